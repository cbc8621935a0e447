//! A plan as a picture: the tree of servers, and which part of a bucket one rank owns after each step.

use crate::cli::report::svg::{Anchor, Picture};
use crate::cli::text::{bytes, count};
use crate::cli::tools::plan::text::servers;
use crate::cli::tools::plan::view::{Head, RankView, View};
use crate::error::{Error, Result};

/// More servers are not drawn.
const SERVERS: u32 = 64;
const WIDTH: f64 = 900.0;
const MARGIN: f64 = 24.0;
const LEVEL: f64 = 46.0;
const ROW: f64 = 40.0;

/// The picture of `rank`'s plan, of the first bucket.
///
/// # Errors
/// `Unsupported` with more servers than can be told apart.
pub(crate) fn draw(view: &View, rank: u32) -> Result<String> {
    let head = &view.head;
    if head.servers > SERVERS {
        return Err(Error::unsupported(format!(
            "--svg draws at most {SERVERS} servers, not {}",
            head.servers
        )));
    }
    let plan = view.rank(rank)?;
    let steps = plan.steps.iter().filter(|step| step.bucket == 0).count();
    let tree_top = 84.0;
    let steps_top = tree_top + LEVEL * (head.rounds.len() + 1) as f64 + 48.0;
    let height = steps_top + ROW * steps as f64 + 40.0;
    let title = format!("Plan of rank {rank} of {}", head.ranks);
    let mut picture = Picture::new(WIDTH, height, &title);
    picture.text((MARGIN, 34.0), 20.0, Anchor::Start, "ink", &title);
    let subtitle = format!(
        "{} of {}, {}, radix {}; {}, {} of {} in {}",
        count(head.servers, "server"),
        count(head.devices_per_server, "device"),
        head.placement,
        head.radix,
        count(head.tensors as u64, "tensor"),
        bytes(head.bytes),
        head.dtype,
        count(head.buckets.len() as u64, "bucket")
    );
    picture.text((MARGIN, 56.0), 13.0, Anchor::Start, "soft", &subtitle);
    tree(&mut picture, head, plan.server, tree_top);
    rows(&mut picture, head, &plan, steps_top);
    Ok(picture.file())
}

/// The servers, and below them what each round merges.
fn tree(picture: &mut Picture, head: &Head, own: u32, top: f64) {
    let left = MARGIN + 90.0;
    let cell = (WIDTH - MARGIN - left) / f64::from(head.servers);
    let label = |picture: &mut Picture, level: usize, text: &str| {
        let y = top + LEVEL * level as f64 + 20.0;
        picture.text((MARGIN, y), 13.0, Anchor::Start, "soft", text);
    };
    label(picture, 0, "servers");
    let middle = |first: u32, end: u32| left + cell * (f64::from(first) + f64::from(end)) / 2.0;
    let bar = |picture: &mut Picture, level: usize, part: &[u32; 2]| {
        let x = left + cell * f64::from(part[0]) + cell * 0.06;
        let width = cell * (f64::from(part[1] - part[0]) - 0.12);
        let y = top + LEVEL * level as f64;
        let inside = (part[0]..part[1]).contains(&own);
        picture.rect((x, y), (width, 28.0), if inside { "f0" } else { "box" });
        let text = servers(part);
        // About 8 units a character.
        if width >= 8.0 * text.len() as f64 {
            let class = if inside { "paper" } else { "ink" };
            let at = (middle(part[0], part[1]), y + 19.0);
            picture.text(at, 13.0, Anchor::Middle, class, &text);
        }
    };
    for server in 0..head.servers {
        bar(picture, 0, &[server, server + 1]);
    }
    for (round, merges) in head.rounds.iter().enumerate() {
        label(picture, round + 1, &format!("round {round}"));
        for parts in merges {
            let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
                continue;
            };
            let whole = [first[0], last[1]];
            let lower = top + LEVEL * (round + 1) as f64;
            let upper = lower - (LEVEL - 28.0);
            for part in parts {
                let from = (middle(part[0], part[1]), upper);
                picture.line(&[from, (middle(whole[0], whole[1]), lower)], "axis");
            }
            bar(picture, round + 1, &whole);
        }
    }
}

/// A bar for each step of the first bucket: the buffer, and what the rank owns of it after the step.
fn rows(picture: &mut Picture, head: &Head, plan: &RankView, top: f64) {
    let Some(bucket) = head.buckets.first() else {
        return;
    };
    let heading = format!(
        "Bucket 0 ({}) on rank {}: what it owns after each step",
        bytes(bucket.bytes),
        plan.rank
    );
    picture.text((MARGIN, top - 14.0), 15.0, Anchor::Start, "ink", &heading);
    let left = MARGIN + 130.0;
    let width = 360.0;
    let scale = width / bucket.elements.max(1) as f64;
    for (row, step) in plan
        .steps
        .iter()
        .filter(|step| step.bucket == 0)
        .enumerate()
    {
        let y = top + ROW * row as f64;
        picture.text((MARGIN, y + 17.0), 13.0, Anchor::Start, "ink", &step.step);
        picture.rect((left, y), (width, 24.0), "box");
        let [start, end] = step.owns;
        let owned = (scale * (end - start) as f64).max(2.0);
        picture.rect((left + scale * start as f64, y), (owned, 24.0), "f0");
        let peers = step.sends.len();
        let mut figures = match peers {
            0 => "sends nothing".to_owned(),
            1 => format!(
                "sends {} to rank {}",
                bytes(step.sent_bytes),
                step.sends[0].peer
            ),
            _ => format!("sends {} to {peers} ranks", bytes(step.sent_bytes)),
        };
        if let Some(scalars) = step
            .combine
            .as_ref()
            .and_then(|combine| combine.scalars.as_ref())
        {
            figures += &format!("; scalars {} by {} ranks", scalars.how, scalars.ranks);
        }
        picture.text(
            (left + width + 14.0, y + 17.0),
            12.0,
            Anchor::Start,
            "soft",
            &figures,
        );
    }
}
