//! Plans for a terminal.

use std::fmt::Write;

use crate::cli::text::{bytes, count};
use crate::cli::tools::plan::view::{Head, Message, StepView, View};
use crate::error::{Result, cut};

/// How many subtrees of a round are listed.
const LISTED: usize = 8;

/// The steps of one rank.
pub(crate) fn of_rank(view: &View, rank: u32) -> Result<String> {
    let plan = view.rank(rank)?;
    let mut text = head(&view.head);
    let _ = writeln!(
        text,
        "\nrank {rank} (server {}, local {}): sends {} in {}, {} to other servers; {:.3} ms by the cost model of {}",
        plan.server,
        plan.local,
        bytes(plan.sent_bytes),
        count(plan.messages, "message"),
        bytes(plan.bytes_between_servers),
        1e3 * plan.seconds,
        view.head.machine,
    );
    for (bucket, head) in view.head.buckets.iter().enumerate() {
        let _ = writeln!(
            text,
            "\nbucket {bucket}: tensors {}..{}, {}, {}",
            head.tensors[0],
            head.tensors[1],
            count(head.elements, "element"),
            bytes(head.bytes)
        );
        for step in plan.steps.iter().filter(|step| step.bucket == bucket) {
            step_lines(&mut text, step);
        }
    }
    Ok(text)
}

/// A line for each rank.
pub(crate) fn of_all(view: &View) -> Result<String> {
    let mut text = head(&view.head);
    let _ = writeln!(
        text,
        "\n{:>6} {:>6} {:>5} {:>12} {:>14} {:>8} {:>12} {:>10}",
        "rank", "server", "local", "sent", "other servers", "messages", "memory", "model ms"
    );
    for rank in 0..view.shape.size() {
        let plan = view.rank(rank)?;
        let _ = writeln!(
            text,
            "{rank:>6} {:>6} {:>5} {:>12} {:>14} {:>8} {:>12} {:>10.3}",
            plan.server,
            plan.local,
            bytes(plan.sent_bytes),
            bytes(plan.bytes_between_servers),
            plan.messages,
            bytes(plan.accessed_bytes),
            1e3 * plan.seconds
        );
    }
    let _ = writeln!(text, "\n--rank R shows the steps of a rank");
    Ok(text)
}

fn head(head: &Head) -> String {
    let mut text = format!(
        "{} of {}, {}; {}, radix {}, {}\n{}, {} of {}, {} in {}\n",
        count(head.servers, "server"),
        count(head.devices_per_server, "device"),
        count(head.ranks, "rank"),
        head.placement,
        head.radix,
        head.exchange,
        count(head.tensors as u64, "tensor"),
        count(head.elements, "element"),
        head.dtype,
        bytes(head.bytes),
        count(head.buckets.len() as u64, "bucket")
    );
    let (tree, more) = cut(&head.tree);
    let _ = writeln!(text, "tree of servers: {tree}{more}");
    for (index, merges) in head.rounds.iter().enumerate() {
        let show = |parts: &Vec<[u32; 2]>| {
            let parts: Vec<String> = parts.iter().map(servers).collect();
            parts.join(" + ")
        };
        let listed: Vec<String> = merges.iter().take(LISTED).map(show).collect();
        let more = match merges.len().checked_sub(LISTED) {
            Some(more) if more > 0 => format!(", and {more} more"),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "round {index} merges servers {}{more}",
            listed.join(", ")
        );
    }
    text
}

/// A run of servers, first and end.
pub(crate) fn servers(part: &[u32; 2]) -> String {
    match part[1] - part[0] {
        1 => part[0].to_string(),
        _ => format!("{}-{}", part[0], part[1] - 1),
    }
}

fn step_lines(text: &mut String, step: &StepView) {
    let _ = writeln!(
        text,
        "  {:<18} owns {}..{} afterwards; memory {}, {:.3} ms",
        step.step,
        step.owns[0],
        step.owns[1],
        bytes(step.accessed_bytes),
        1e3 * step.seconds
    );
    for (arrow, messages) in [("->", &step.sends), ("<-", &step.receives)] {
        for message in messages {
            let _ = writeln!(text, "    {arrow} {}", line(message));
        }
    }
    let Some(combine) = &step.combine else { return };
    let group = combine
        .group
        .as_ref()
        .map(|name| format!(" of group {name}"));
    let _ = writeln!(
        text,
        "    combines {} vectors{}, its own is number {}",
        combine.vectors,
        group.unwrap_or_default(),
        combine.own
    );
    if let Some(scalars) = &combine.scalars {
        let last = scalars.first_rank + (scalars.ranks - 1) * scalars.stride;
        let step_of = match scalars.stride {
            1 => String::new(),
            stride => format!(" in steps of {stride}"),
        };
        let _ = writeln!(
            text,
            "    scalars of tensors {}..{} are {} over ranks {}-{last}{step_of}, {} sent",
            scalars.tensors[0],
            scalars.tensors[1],
            scalars.how,
            scalars.first_rank,
            bytes(step.scalar_bytes)
        );
    }
}

fn line(message: &Message) -> String {
    let tag = message.tag.map(|tag| format!("  tag {tag}"));
    format!(
        "rank {:<5} {}..{}  {}{}",
        message.peer,
        message.range[0],
        message.range[1],
        bytes(message.bytes),
        tag.unwrap_or_default()
    )
}
