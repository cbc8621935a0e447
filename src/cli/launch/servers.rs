//! `--hosts`: a launcher on each of several machines. Their commands are printed, or started over ssh.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;

use crate::cli::io::{failed, notice, print};
use crate::cli::launch::children::Input;
use crate::cli::launch::event::Pipe;
use crate::cli::launch::job::{self, End, Limits, Observer, Rank, job_name};
use crate::cli::launch::output::write_lines;
use crate::cli::launch::{ranks, reaper, signals};
use crate::error::{Error, Result};
use crate::reduce::REPORT_VARIABLE;
use crate::topo::JobSecret;

/// Never asks for a password, which would be waited for.
const SSH: &str = "ssh -o BatchMode=yes";
/// How much later than the launchers this program ends a job that has a limit: what they take to end their ranks, and some seconds.
const LATER: Duration = Duration::from_secs(15);

#[derive(Debug, clap::Args)]
pub(crate) struct Start {
    /// Start the commands of --hosts over ssh, or over another program that takes a host and a command, as --ssh="ssh -p 2222"
    #[arg(
        long, value_name = "PROGRAM", num_args = 0..=1, require_equals = true, default_missing_value = SSH,
        value_parser = NonEmptyStringValueParser::new(),
        conflicts_with_all = ["server_id", "rank", "stdin", "restarts", "report", "trace"]
    )]
    ssh: Option<String>,
    /// Give the ranks this variable, as it is here if there is no value; may be given several times. With --ssh they get nothing
    /// else of this environment. Variables that this program sets itself are refused
    #[arg(short = 'x', long = "env", value_name = "NAME[=VALUE]", value_parser = variable)]
    variables: Vec<(String, OsString)>,
    /// Stop the job when standard input ends: for whoever starts this program over ssh
    #[arg(long, conflicts_with = "stdin")]
    end_with_stdin: bool,
}

impl Start {
    /// Variables of the user's for the ranks.
    pub(crate) fn variables(&self) -> &[(String, OsString)] {
        &self.variables
    }

    /// Whether `command`, which is complete, has the variables of the user's.
    ///
    /// # Errors
    /// Names one that this program sets itself.
    pub(crate) fn check_variables(&self, command: &Command) -> Result<()> {
        // Of several values the last counts. The job sets these two later.
        let given: BTreeMap<&str, &OsStr> = self
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_os_str()))
            .collect();
        let own = given.into_iter().find(|&(name, value)| {
            let is_kept =
                |(known, kept): (&OsStr, Option<&OsStr>)| known == name && kept == Some(value);
            [reaper::MARK, REPORT_VARIABLE].contains(&name) || !command.get_envs().any(is_kept)
        });
        match own {
            None => Ok(()),
            Some((name, _)) => Err(Error::invalid(format!(
                "--env {name}: ranks get this variable from adasum-run launch itself, with another value"
            ))),
        }
    }

    /// Has the end of standard input stop the job, if that is asked for.
    ///
    /// # Errors
    /// If --ssh was given: there are no hosts.
    pub(crate) fn begin_here(&self) -> Result<()> {
        if self.ssh.is_some() {
            return Err(Error::invalid(
                "--ssh: to which machines? Give --hosts a:8,b:8",
            ));
        }
        if !self.end_with_stdin {
            return Ok(());
        }
        signals::block()?;
        let wait = || {
            // Whatever still comes is for nobody.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            signals::receive(libc::SIGTERM);
        };
        let started = std::thread::Builder::new().spawn(wait);
        started
            .map(|_| ())
            .map_err(|error| failed("--end-with-stdin", error))
    }

    /// Prints a command for each of `hosts`, or starts all and waits for them, at most `timeout` and a little more.
    ///
    /// # Errors
    /// If there is no secret to be had, or this machine refuses what the job needs.
    pub(crate) fn launch(
        &self,
        hosts: &[&str],
        job: Option<&str>,
        timeout: Option<Duration>,
    ) -> Result<End> {
        let given: Vec<OsString> = std::env::args_os().skip(1).collect();
        let job = job.map_or_else(job_name, str::to_owned);
        let arguments = |server, more: &[&str]| words(&arguments(&given, server, &job, more));
        let hosts = (0..).zip(hosts.iter().copied());
        let Some(program) = &self.ssh else {
            let commands = hosts.map(|(server, host)| (host, arguments(server, &[])));
            return print_commands(commands).map(|()| End::Success);
        };
        let remote = |server| remote_command(&arguments(server, &["--end-with-stdin"]));
        let first = self.first_line()?;
        let mut servers = Vec::new();
        for (server, host) in hosts {
            let mut parts = program.split_whitespace();
            let mut command = Command::new(parts.next().unwrap_or_default());
            command.args(parts).arg(host).arg(remote(server)?);
            servers.push(Rank {
                rank: server,
                place: host.to_owned(),
                command,
                input: Input::Text(first.clone()),
            });
        }
        let limits = Limits {
            timeout: timeout.map(|limit| limit.saturating_add(LATER)),
            // A signal would end ssh only, and leave the launcher that it leads to.
            after_input: LATER,
            ..Limits::default()
        };
        // The ranks are those of the launchers.
        job::run(servers, 0, &limits, &mut PassOn)
    }

    /// What a launcher's shell is told: the secret, which must be the same on all servers, and the user's variables.
    fn first_line(&self) -> Result<Vec<u8>> {
        let secret = match JobSecret::from_env()? {
            Some(secret) => secret,
            None => JobSecret::fresh()?,
        };
        let (name, value) = secret.variable();
        // Both together would be refused.
        let unset = format!("unset {}; export ", JobSecret::FILE_VARIABLE);
        let mut line = [unset.as_bytes(), name.as_bytes(), b"="].concat();
        line.extend(word(OsStr::new(value)));
        for (name, value) in &self.variables {
            if value.as_bytes().contains(&b'\n') {
                return Err(Error::invalid(format!(
                    "--env {name}: with --ssh a value must not have line breaks"
                )));
            }
            line.extend([b" ", name.as_bytes(), b"=", &word(value)].concat());
        }
        line.push(b'\n');
        Ok(line)
    }
}

/// Prints the command of each host, and what its user has to know.
fn print_commands<'a>(commands: impl Iterator<Item = (&'a str, Vec<u8>)>) -> Result<()> {
    let mut text = String::new();
    for (host, command) in commands {
        let command = String::from_utf8_lossy(&command);
        text += &format!("# on {host}\nadasum-run {command}\n");
    }
    if JobSecret::from_env()?.is_none() {
        notice(&format!(
            "give all of them the same {} or {}, or anybody can join",
            JobSecret::VARIABLE,
            JobSecret::FILE_VARIABLE
        ));
    }
    print(&text)
}

/// What the shell of another machine is to run: this program in a folder of this name, after the line on its input. Values do not
/// belong on a command line, which everybody there can read.
fn remote_command(arguments: &[u8]) -> Result<OsString> {
    let folder = std::env::current_dir();
    let folder = folder.map_err(|error| failed("the current directory", error))?;
    let command = [
        b"cd ",
        &word(folder.as_os_str())[..],
        b" && IFS= read -r line && eval \"$line\" && exec ",
        &word(ranks::this_program()?.as_os_str()),
        b" ",
        arguments,
    ];
    Ok(OsString::from_vec(command.concat()))
}

/// Hands on what launchers write, which has prefixes already.
struct PassOn;

impl Observer for PassOn {
    fn what(&self) -> &'static str {
        "server"
    }

    fn line(&mut self, _server: u32, pipe: Pipe, line: &[u8]) -> std::io::Result<()> {
        self.lines(0, pipe, &[line, b"\n"].concat(), &|_| false)
    }

    fn lines(
        &mut self,
        _server: u32,
        pipe: Pipe,
        lines: &[u8],
        give_up: &dyn Fn(Duration) -> bool,
    ) -> std::io::Result<()> {
        write_lines(pipe, lines, give_up)
    }

    fn notice(&mut self, text: &str) {
        notice(text);
    }
}

/// The arguments of server number `server`: those `given` to this program without --ssh, and `more`.
fn arguments(given: &[OsString], server: u32, job: &str, more: &[&str]) -> Vec<OsString> {
    let own = given
        .iter()
        .position(|word| word == "--")
        .unwrap_or(given.len());
    let (options, program) = given.split_at(own);
    let is_ssh = |word: &OsString| word == "--ssh" || word.as_bytes().starts_with(b"--ssh=");
    let mut all: Vec<OsString> = options
        .iter()
        .filter(|word| !is_ssh(word))
        .cloned()
        .collect();
    all.extend(["--server-id".into(), server.to_string().into()]);
    all.extend(more.iter().map(OsString::from));
    if !options
        .iter()
        .any(|word| word == "--job" || word.as_bytes().starts_with(b"--job="))
    {
        all.extend(["--job".into(), job.into()]);
    }
    all.extend_from_slice(program);
    all
}

/// Words as a shell reads them back.
fn words(all: &[OsString]) -> Vec<u8> {
    let all: Vec<Vec<u8>> = all.iter().map(|text| word(text)).collect();
    all.join(&b' ')
}

fn word(text: &OsStr) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_=+,./:@%".contains(byte);
    let text = text.as_bytes();
    if !text.is_empty() && text.iter().all(plain) {
        return text.to_vec();
    }
    let parts: Vec<&[u8]> = text.split(|&byte| byte == b'\'').collect();
    [b"'", &parts.join(&b"'\\''"[..])[..], b"'"].concat()
}

/// `NAME=VALUE`, or `NAME` for the value that it has here.
fn variable(text: &str) -> std::result::Result<(String, OsString), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.into())),
        None => (text, std::env::var_os(text)),
    };
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || !name.chars().all(letter)
    {
        return Err("must be NAME or NAME=VALUE".to_owned());
    }
    match value {
        Some(value) => Ok((name.to_owned(), value)),
        None => Err("it is not set here, and there is no value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_every_word_back() {
        let all = [
            "plain",
            "",
            "two words",
            "it's",
            "$HOME `id` \\ \"",
            "a\nb",
            "*",
            "ü",
        ]
        .map(OsString::from);
        let script = [b"printf '%s\\0' ", &words(&all)[..]].concat();
        let output = Command::new("sh")
            .arg("-c")
            .arg(OsString::from_vec(script))
            .output()
            .unwrap();
        let read: Vec<&[u8]> = output.stdout.split(|&byte| byte == 0).collect();
        let wanted: Vec<&[u8]> = all
            .iter()
            .map(|text| text.as_bytes())
            .chain([&b""[..]])
            .collect();
        assert_eq!(read, wanted);
    }

    #[test]
    fn a_servers_command_is_that_of_the_user_with_its_number() {
        let given = [
            "launch",
            "--hosts",
            "a:2",
            "--ssh",
            "--ssh=x y",
            "--",
            "p",
            "--ssh",
        ]
        .map(OsString::from);
        let made = arguments(&given, 1, "j", &[]);
        assert_eq!(
            words(&made),
            b"launch --hosts a:2 --server-id 1 --job j -- p --ssh"
        );
        let given = ["launch", "--job=mine", "--", "p"].map(OsString::from);
        assert_eq!(
            words(&arguments(&given, 0, "j", &["-o"])),
            b"launch --job=mine --server-id 0 -o -- p"
        );
    }
}
