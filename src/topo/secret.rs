//! The secret of a job, with which ranks prove to each other that they belong to it.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::own_file::{self, OTHERS_ANY};
use crate::error::{Context, Error, ErrorKind, Result};

pub(super) const SECRET: &str = "ADASUM_JOB_SECRET";
pub(super) const SECRET_FILE: &str = "ADASUM_JOB_SECRET_FILE";

/// The fewest bytes of a secret: a shorter one could be guessed by whoever sees a proof.
const FEWEST: usize = 16;
/// The most bytes of a file with a secret.
const MOST: u64 = 4096;
/// Random bytes of a secret that is made here.
const FRESH: usize = 32;
const RANDOM: &str = "/dev/urandom";

/// A secret that all ranks of a job share, and nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct JobSecret {
    text: String,
}

/// Bytes of a proof.
pub(super) const PROOF: usize = 32;

impl JobSecret {
    /// The variable that holds a secret, and whose value nobody else may see.
    pub const VARIABLE: &'static str = SECRET;
    /// The variable that names a file with a secret.
    pub const FILE_VARIABLE: &'static str = SECRET_FILE;

    /// A new secret that nobody can guess.
    ///
    /// # Errors
    /// `Io` if this machine has no random numbers.
    pub fn fresh() -> Result<JobSecret> {
        let bytes = random::<FRESH>()
            .map_err(|error| Error::new(ErrorKind::Io, format!("{RANDOM}: {error}")))?;
        let text = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(JobSecret { text })
    }

    /// The secret in the variable `ADASUM_JOB_SECRET`, or in the file that `ADASUM_JOB_SECRET_FILE` names, without white space
    /// at its end; `None` if neither is set.
    ///
    /// # Errors
    /// `InvalidArgument` names the variable: both are set, the secret has fewer than 16 bytes, or the file belongs to another
    /// user or has a mode by which others may use it.
    pub fn from_env() -> Result<Option<JobSecret>> {
        JobSecret::read(|name| std::env::var_os(name))
    }

    /// [`JobSecret::from_env`] over any source of variables.
    pub(crate) fn read(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Option<JobSecret>> {
        let get = |name| lookup(name).filter(|value| !value.is_empty());
        let (name, text) = match (get(SECRET), get(SECRET_FILE)) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid(format!(
                    "{SECRET} and {SECRET_FILE} are set: set one of them"
                )));
            }
            (None, None) => return Ok(None),
            (Some(text), None) => (SECRET, text.into_string().ok()),
            (None, Some(path)) => (
                SECRET_FILE,
                read_file(&PathBuf::from(path)).context(|| SECRET_FILE)?,
            ),
        };
        let text =
            text.ok_or_else(|| Error::invalid(format!("{name}: the secret is not UTF-8")))?;
        let length = text.len();
        if length < FEWEST {
            return Err(Error::invalid(format!(
                "{name}: the secret has {length} bytes, at least {FEWEST} are needed"
            )));
        }
        Ok(Some(JobSecret { text }))
    }

    /// The variable that gives this secret to a process, and its value.
    pub fn variable(&self) -> (&'static str, &str) {
        (JobSecret::VARIABLE, &self.text)
    }
}

impl fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobSecret")
    }
}

/// The text of a file, unless it is no UTF-8.
fn read_file(path: &Path) -> Result<Option<String>> {
    let absent = || Error::invalid(format!("{}: no such file", path.display()));
    let file = own_file::open(path, OTHERS_ANY)?.ok_or_else(absent)?;
    let mut bytes = Vec::new();
    file.take(MOST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| own_file::failed(path, &error))?;
    if bytes.len() as u64 > MOST {
        return Err(Error::invalid(format!(
            "{}: it has more than {MOST} bytes",
            path.display()
        )));
    }
    let text = String::from_utf8(bytes).ok();
    Ok(text.map(|text| text.trim_end().to_owned()))
}

/// What has to be known of `secret` to make the proof of `parts`; without a secret anybody can make it. Its
/// `verify_slice` takes the same time wherever a false proof differs.
pub(super) fn proof(secret: Option<&JobSecret>, parts: &[&[u8]]) -> Hmac<Sha256> {
    let text = secret.map_or("", |secret| secret.text.as_str());
    // A key of the block's length, which no call can refuse.
    let mut key = [0; 64];
    key[..PROOF].copy_from_slice(&Sha256::digest(text));
    let mut proof = <Hmac<Sha256> as KeyInit>::new(&key.into());
    for part in parts {
        proof.update(part);
    }
    proof
}

/// Random bytes that nobody can foresee.
pub(super) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open(RANDOM)?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const GOOD: &str = "sixteen or more.";

    fn with(variables: &[(&str, &str)]) -> Result<Option<JobSecret>> {
        JobSecret::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn a_secret_comes_from_one_variable_or_a_file_that_is_this_users_own() {
        let path = std::env::temp_dir().join(format!("adasum-secret-{}", std::process::id()));
        let file = path.to_str().unwrap();
        std::fs::write(&path, format!("{GOOD}\n")).unwrap();
        let mode = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        mode(0o600);
        let direct = with(&[(SECRET, GOOD)]).unwrap().unwrap();
        assert_eq!(
            with(&[(SECRET_FILE, file), (SECRET, "")]).unwrap(),
            Some(direct.clone())
        );
        assert_eq!(with(&[]).unwrap(), None);
        assert_eq!(direct.variable(), (SECRET, GOOD));
        assert!(!format!("{direct:?}").contains(GOOD));

        let says = |variables: &[(&str, &str)], what: &str| {
            let error = with(variables).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            let text = error.to_string();
            assert!(text.contains(what) && !text.contains("fifteen"), "{text}");
        };
        says(&[(SECRET, GOOD), (SECRET_FILE, file)], "set one of them");
        says(
            &[(SECRET, "fifteen bytes..")],
            "ADASUM_JOB_SECRET: the secret has 15 bytes",
        );
        says(
            &[(SECRET_FILE, "/no/such")],
            "ADASUM_JOB_SECRET_FILE: /no/such: no such file",
        );
        mode(0o644);
        says(&[(SECRET_FILE, file)], &format!("{file}: its mode is 0644"));
        mode(0o600);
        std::fs::write(&path, vec![b'x'; 5000]).unwrap();
        says(&[(SECRET_FILE, file)], "more than 4096 bytes");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn no_two_secrets_are_the_same() {
        let [first, second] = [(), ()].map(|()| JobSecret::fresh().unwrap());
        assert_eq!(first.text.len(), 2 * FRESH);
        assert_ne!(first, second);
    }

    /// The expected proof is that of Python: `hmac.new(sha256(secret).digest(), b"abc", sha256)`.
    #[test]
    fn a_proof_is_of_the_secret_and_of_all_parts() {
        let secret = JobSecret {
            text: GOOD.to_owned(),
        };
        let tag = |secret: Option<&JobSecret>, parts: &[&[u8]]| {
            proof(secret, parts).finalize().into_bytes()
        };
        let expected = tag(Some(&secret), &[b"a", b"bc"]);
        let hex: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "6aa797721eb874ff1ded148a9594cb976a0a7546604ac9d724b06c2f0dfb56b6"
        );
        assert_ne!(tag(Some(&secret), &[b"abd"]), expected);
        assert_ne!(tag(None, &[b"abc"]), expected);
        assert!(
            proof(Some(&secret), &[b"abc"])
                .verify_slice(&expected)
                .is_ok()
        );
        assert!(
            proof(Some(&secret), &[b"abc"])
                .verify_slice(&expected[1..])
                .is_err()
        );
    }
}
