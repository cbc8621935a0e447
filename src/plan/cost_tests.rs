use super::*;

fn layout(dtype: DType, counts: &[u64]) -> Layout {
    Layout::new(dtype, counts).unwrap()
}

/// 161 tensors with 25.5 million elements, most of them in a few: like ResNet-50.
fn resnet() -> Layout {
    let mut counts = Vec::new();
    for i in 0..53 {
        counts.extend([470_000 - 1000 * (i % 7), 256, 256]);
    }
    counts.extend([640_000, 1000]);
    layout(DType::F32, &counts)
}

fn shape(servers: u32, locals: u32) -> Shape {
    Shape::new(servers, locals).unwrap()
}

/// Bytes between servers are 2 (1 - 1/S) N / D, messages 2 (r - 1) a round, memory accesses 2r + 1 an element,
/// whatever the radix: the lengths divide evenly here.
#[test]
fn counts_follow_the_closed_formulas() {
    let (servers, locals) = (16_u64, 4);
    let elements = 1 << 22;
    let bytes = 4 * elements;
    let layout = layout(DType::F32, &[elements]);
    for (radix, rounds) in [(2, vec![2, 2, 2, 2]), (4, vec![4, 4]), (8, vec![2, 8])] {
        let planner = Planner::new(shape(16, 4), layout.clone(), radix).unwrap();
        for rank in 0..64 {
            let cost = Cost::of(&planner.plan(rank).unwrap(), &Machine::ascend_910b());
            let between = 2 * (servers - 1) * bytes / servers / locals;
            assert_eq!(cost.payload_between_servers(), between);
            let inside: u64 = cost.steps.iter().map(|step| step.payload.local.sent).sum();
            assert_eq!(inside, 2 * (locals - 1) * bytes / locals);
            let payload: u64 = cost.steps.iter().map(|step| step.payload.messages()).sum();
            let further: u64 = rounds.iter().map(|r| r - 1).sum();
            assert_eq!(payload, 2 * (locals - 1) + 2 * further);

            let mut slice = bytes / locals;
            let mut accesses = (locals + 1) * slice;
            for r in &rounds {
                slice /= r;
                accesses += (2 * r + 1) * slice;
            }
            assert_eq!(cost.accesses(), accesses);
        }
    }
}

/// One tensor, gathered: each rank's record reaches all others of the group.
#[test]
fn scalars_are_counted() {
    let planner = Planner::new(shape(4, 2), layout(DType::F32, &[1 << 20]), 2).unwrap();
    let cost = Cost::of(&planner.plan(0).unwrap(), &Machine::ascend_910b());
    let sent: Vec<u64> = cost.steps.iter().map(|step| step.scalars.sent()).collect();
    assert_eq!(sent, [0, 3 * 64, 7 * 64, 0, 0, 0]);
    let all: u64 = cost.steps.iter().map(|step| step.payload.sent()).sum();
    assert_eq!(cost.sent(), all + 10 * 64);
}

/// The columns of MindSpore's cells: every rank moves the whole vector between servers.
#[test]
fn columns_cost_as_many_times_the_traffic_as_a_server_has_ranks() {
    let layout = layout(DType::F32, &[1 << 20]);
    let between = |placement| {
        let choices = Choices {
            placement,
            ..Choices::new(2)
        };
        let planner = Planner::with(shape(4, 8), layout.clone(), choices).unwrap();
        Cost::of(&planner.plan(3).unwrap(), &Machine::ascend_910b()).payload_between_servers()
    };
    assert_eq!(
        between(Placement::Columns),
        8 * between(Placement::Hierarchical)
    );
}

/// Milliseconds of published closed formulas for 102 MB of fp32 on servers of eight 910B, 161 tensors.
///
/// Those count scalars a little differently, hence the tolerance.
#[test]
fn times_are_near_those_of_the_closed_formulas() {
    let table = [
        // servers, recursive halving, radix 8
        (2, 1.62, 1.62),
        (8, 2.26, 2.08),
        (32, 2.68, 2.36),
        (128, 3.10, 2.64),
    ];
    let layouts = [resnet()];
    for (servers, halving, eight) in table {
        for (radix, expected) in [(2, halving), (8, eight)] {
            let machine = Machine::ascend_910b();
            let shape = shape(servers, 8);
            let choices = Choices {
                forms: machine.forms(None, shape, radix),
                ..Choices::new(radix)
            };
            let ours = 1e3 * seconds(shape, &layouts, &machine, choices).unwrap();
            let off = (ours / expected - 1.0).abs();
            assert!(
                off < 0.08,
                "{servers} servers, radix {radix}: {ours} ms, not {expected}"
            );
        }
    }
}

fn chosen(shape: Shape, layout: &Layout, machine: &Machine) -> u32 {
    let choices = choose(
        shape,
        std::slice::from_ref(layout),
        machine,
        &Request::default(),
    );
    choices.unwrap().radix
}

#[test]
fn the_fastest_radix_is_chosen() {
    // Latency counts: fewer rounds.
    let small = layout(DType::F32, &[1000; 100]);
    assert!(chosen(shape(64, 8), &small, &Machine::ascend_910b()) > 2);
    assert!(chosen(shape(8, 8), &resnet(), &Machine::ascend_910b()) > 2);
    // Much memory traffic and few products: products never cost more than rounds save.
    for servers in [4, 8, 64] {
        for machine in Machine::NAMES {
            let machine = Machine::named(machine).unwrap();
            assert!(chosen(shape(servers, 1), &resnet(), &machine) > 2);
        }
    }
    // On the CPU a large radix reads and writes less, and the large round comes first, as measured (docs/costs.md). By how much
    // depends on what stays in the caches, which the model does not know.
    let machine = Machine::mock();
    for exchange in [None, Some(Form::Shared)] {
        for (servers, radix, order) in [
            (4, 4, RoundOrder::SmallFirst),
            (8, 8, RoundOrder::SmallFirst),
            (16, 8, RoundOrder::LargeFirst),
        ] {
            let request = Request {
                exchange,
                ..Request::default()
            };
            let choices = choose(shape(servers, 1), &[resnet()], &machine, &request).unwrap();
            assert_eq!(
                (choices.radix, choices.order),
                (radix, order),
                "{servers} ranks"
            );
        }
    }
}

/// The large round first has fewer accesses, the small one first less latency: each is chosen where that counts.
#[test]
fn the_order_of_rounds_is_that_of_the_faster() {
    let order = |elements, machine: &Machine| {
        let layout = layout(DType::F32, &[elements]);
        let request = Request {
            radix: Some(8),
            ..Request::default()
        };
        choose(shape(1024, 1), &[layout], machine, &request)
            .unwrap()
            .order
    };
    let machine = Machine::ascend_910b();
    assert_eq!(order(1 << 12, &machine), RoundOrder::SmallFirst);
    assert_eq!(order(1 << 30, &machine), RoundOrder::LargeFirst);
    let accesses = |order| {
        let choices = Choices {
            order,
            ..Choices::new(8)
        };
        let planner = Planner::with(shape(16, 1), resnet(), choices).unwrap();
        Cost::of(&planner.plan(3).unwrap(), &machine).accesses() as f64
    };
    // (2r + 1) / r of what a rank has before a round: 5/2 + 17/16 and 17/8 + 5/16.
    let ratio = accesses(RoundOrder::LargeFirst) / accesses(RoundOrder::SmallFirst);
    assert!((ratio - 2.4375 / 3.5625).abs() < 0.01, "{ratio}");
}

/// What docs/costs.md says about arithmetic.
#[test]
fn the_page_has_the_price_of_products() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/costs.md");
    let page = std::fs::read_to_string(page).unwrap();
    let machine = Machine::ascend_910b();
    let types = [DType::F32, DType::BF16];
    let products = |radix: u32| f64::from(radix * (radix + 1) / 2);
    let each = |radix, dtype| gram_operations(radix, dtype) / products(radix);
    let [wide, narrow] = types.map(|dtype| {
        let [pair, four, eight] = [2, 4, 8].map(|radix| each(radix, dtype));
        assert!(
            four <= pair && eight <= four,
            "no product costs more than one of two vectors"
        );
        format!("{pair:.1} with r = 2, {four:.1} with r = 4 and {eight:.1} with r = 8")
    });
    let [product, short] = types.map(|dtype| 1e12 * machine.operation * gram_operations(4, dtype));
    let [read, half] = types.map(|dtype| 1e12 * (4 * dtype.size()) as f64 / machine.memory);
    for sentence in [
        format!("fp32: {wide}"),
        format!("16 bits: {narrow}"),
        format!("products of r = 4 take {product:.1} ps an element (16 bits: {short:.1})"),
        format!("reading it takes {read:.0} ({half:.0})"),
    ] {
        assert!(page.contains(&sentence), "docs/costs.md lacks: {sentence}");
    }
}

#[test]
fn no_form_is_faster_than_what_is_chosen() {
    let layouts = [resnet(), layout(DType::F32, &[1000; 100])];
    for name in Machine::NAMES {
        let machine = Machine::named(name).unwrap();
        for (servers, locals, radix) in [
            (1, 8, 2),
            (2, 1, 2),
            (3, 2, 2),
            (8, 8, 2),
            (8, 1, 4),
            (12, 2, 3),
            (64, 8, 8),
        ] {
            let shape = shape(servers, locals);
            let time = |exchange: Option<Form>| {
                let request = Request {
                    radix: Some(radix),
                    owned_above: Some(u64::MAX),
                    exchange,
                    ..Request::default()
                };
                let choices = choose(shape, &layouts, &machine, &request).unwrap();
                seconds(shape, &layouts, &machine, choices).unwrap()
            };
            let chosen = time(None);
            for form in Form::ALL {
                let runs = match form {
                    Form::AllToAll => machine.all_to_all.is_some(),
                    Form::Group => machine.groups,
                    Form::Batch | Form::Pairwise => true,
                    // Only where it is asked for.
                    Form::Shared => false,
                };
                assert!(
                    !runs || chosen <= time(Some(form)),
                    "{name}, {servers} servers of {locals}, radix {radix}: {form:?}"
                );
            }
        }
    }
}

/// HCCL sends to one peer after another in a batch: seven times as long as over seven links.
#[test]
fn a_batch_is_serial_and_an_all_to_all_is_not() {
    let machine = Machine::ascend_910b();
    let (shape, layouts) = (shape(1, 8), [layout(DType::F32, &[80_000_000])]);
    let time = |form| {
        let choices = Choices {
            forms: Forms::of(form),
            ..Choices::new(2)
        };
        seconds(shape, &layouts, &machine, choices).unwrap()
    };
    let share = 40e6;
    let sum = 9.0 * share / machine.memory;
    let at_once = 2.0 * (10e-6 + 6.0 * 2e-6 + share / 28e9) + sum;
    let serial = 2.0 * 7.0 * (10e-6 + share / 28e9 + 4.0 * share / machine.memory) + sum;
    for (form, expected) in [(Form::AllToAll, at_once), (Form::Batch, serial)] {
        let off = (time(form) / expected - 1.0).abs();
        assert!(off < 1e-3, "{form:?}: {} s, not {expected}", time(form));
    }
}

#[test]
fn what_is_asked_for_is_kept() {
    let request = Request {
        radix: Some(5),
        placement: Placement::Columns,
        exchange: Some(Form::Pairwise),
        owned_above: Some(7),
    };
    let choices = choose(shape(4, 2), &[resnet()], &Machine::mock(), &request).unwrap();
    assert_eq!(
        choices,
        Choices {
            radix: 5,
            order: RoundOrder::SmallFirst,
            placement: Placement::Columns,
            forms: Forms::of(Form::Pairwise),
            owned_above: 7
        }
    );
    let nine = Request {
        radix: Some(9),
        ..request
    };
    let error = choose(shape(4, 2), &[resnet()], &Machine::mock(), &nine).unwrap_err();
    assert!(error.to_string().contains("radix 9"), "{error}");
}

/// Many small tensors in one slice make everyone's contribution long: owners are faster there.
#[test]
fn owners_of_scalars_pay_off_in_large_worlds() {
    let mut counts = vec![40_000_000];
    counts.extend([64; 3000]);
    let layouts = [layout(DType::F32, &counts)];
    let machine = Machine::ascend_910b();
    let time = |owned_above| {
        let choices = Choices {
            owned_above,
            forms: machine.forms(None, shape(64, 8), 8),
            ..Choices::new(8)
        };
        seconds(shape(64, 8), &layouts, &machine, choices).unwrap()
    };
    let chosen = machine.owned_above(shape(64, 8));
    let (owned, gathered) = (time(chosen), time(u64::MAX));
    assert!(owned < 0.9 * gathered, "{owned} beside {gathered}");
    // And in a small world the further exchange does not.
    let small = machine.owned_above(shape(2, 8));
    assert!(small > 16 * 161 * 4 * record_words(2) as u64);
}

#[test]
fn machines_are_found_by_name_and_read_from_text() {
    for name in Machine::NAMES {
        let machine = Machine::named(name).unwrap();
        assert_eq!(machine.name, name);
        let text = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
    }
    assert!(Machine::named("B200").is_none());
}
