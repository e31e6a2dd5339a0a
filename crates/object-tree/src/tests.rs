//! Tests how texts are read, and which ones are refused.

use std::fmt::Write as _;

use super::*;

/// Every object of a text as one line: `line kind/name`.
fn objects(text: &str) -> Result<Vec<String>, SyntaxError> {
    let mut found = Vec::new();
    read(text.as_bytes(), |node| {
        let text = |node: Option<&Node>| node.and_then(Node::text).unwrap_or("-").to_owned();
        let name = node
            .get("metadata")
            .and_then(|metadata| metadata.get("name"));
        found.push(format!(
            "{} {}/{}",
            node.line,
            text(node.get("kind")),
            text(name)
        ));
    })?;
    Ok(found)
}

fn only(text: &str) -> Node {
    let mut found = Vec::new();
    read(text.as_bytes(), |node| found.push(node)).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn documents_are_objects_and_empty_ones_are_not() {
    let text = "# nothing yet\n---\nkind: A\nmetadata: {name: x}\n---\n---\n# nothing\n---\nkind: B\n...\n";
    assert_eq!(objects(text).unwrap(), ["3 A/x", "9 B/-"]);
}

#[test]
fn items_of_a_list_are_objects_with_their_own_lines() {
    let text = "apiVersion: v1\nitems:\n- kind: A\n  metadata:\n    name: x\n- metadata:\n    name: y\n  kind: B\nkind: List\n";
    assert_eq!(objects(text).unwrap(), ["3 A/x", "6 B/y"]);
}

#[test]
fn items_of_a_typed_list_take_its_kind_wherever_it_is_written() {
    let first = r#"{"kind":"ServiceList","apiVersion":"v1","items":[{"metadata":{"name":"x"}}]}"#;
    let last = r#"{"apiVersion":"v1","items":[{"metadata":{"name":"x"}}],"kind":"ServiceList"}"#;
    assert_eq!(objects(first).unwrap(), ["1 Service/x"]);
    assert_eq!(objects(last).unwrap(), ["1 Service/x"]);
}

#[test]
fn lists_may_contain_lists() {
    let text =
        "kind: List\nitems:\n- kind: ServiceList\n  items:\n  - metadata: {name: x}\n- kind: A\n";
    assert_eq!(objects(text).unwrap(), ["5 Service/x", "6 A/-"]);
}

#[test]
fn json_as_kubectl_and_people_write_it_is_read() {
    let text = "{\n\t\"kind\": \"A\",\n\t\"metadata\": {\"name\": \"\\u00e9\\ud83d\\ude00\", \"n\": 1}\n}\n";
    assert_eq!(objects(text).unwrap(), ["1 A/é😀"]);
}

#[test]
fn scalars_keep_their_text() {
    let node = only(
        "a: no\nb: 0123\nc: '1'\nd: 1.10\ne: ~\nf: 'null'\ng: !!str null\nh: true\ni: yes\nj:\nk: Off\nl: 'no'\nm: 1",
    );
    let text = |key| node.get(key).and_then(Node::text).map(str::to_owned);
    assert_eq!(text("a").as_deref(), Some("no"));
    assert_eq!(text("b").as_deref(), Some("0123"));
    assert_eq!(text("c").as_deref(), Some("1"));
    assert_eq!(text("d").as_deref(), Some("1.10"));
    assert_eq!(text("e"), None);
    assert_eq!(text("f").as_deref(), Some("null"));
    assert_eq!(text("g").as_deref(), Some("null"));
    let boolean = |key| node.get(key).and_then(Node::boolean);
    assert_eq!(
        ["h", "i", "k"].map(boolean),
        [Some(true), Some(true), Some(false)]
    );
    assert_eq!(["l", "m"].map(boolean), [None, None]);
    assert_eq!(text("j"), None);
}

#[test]
fn aliases_and_merges_are_followed() {
    let node = only("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\nlist: &l [*b]\nagain: *l\n");
    let used = node.get("use").unwrap();
    assert_eq!(used.get("x").and_then(Node::text), Some("1"));
    assert_eq!(used.get("y").and_then(Node::text), Some("3"));
    let again = node.get("again").and_then(Node::list).unwrap();
    assert_eq!(again[0].get("y").and_then(Node::text), Some("2"));
}

#[test]
fn a_key_written_twice_is_refused_with_its_line() {
    let error = objects("a: 1\nb: 2\na: 3\n").unwrap_err();
    assert_eq!(
        error,
        SyntaxError::Broken {
            line: 3,
            message: "the key `a` is written twice in one mapping".to_owned()
        }
    );
}

#[test]
fn errors_name_their_line() {
    let error = objects("a: 1\nb: [\n").unwrap_err();
    assert!(
        matches!(error, SyntaxError::Broken { line: 2..=3, .. }),
        "{error:?}"
    );
}

#[test]
fn a_billion_laughs_ends_with_one_error_and_little_memory() {
    let mut text = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..30 {
        let below = format!("*a{},", level - 1).repeat(10);
        writeln!(text, "a{level}: &a{level} [{below}]").unwrap();
    }
    let error = objects(&text).unwrap_err();
    assert_eq!(
        error,
        SyntaxError::TooMuch {
            line: 6,
            message: "aliases expand to more than 1000000 values".to_owned()
        }
    );
}

#[test]
fn a_merge_bomb_ends_with_an_error() {
    let mut text = String::from("a0: &a0 {k: lol}\n");
    for level in 1..40 {
        let below = level - 1;
        writeln!(
            text,
            "a{level}: &a{level} {{p{level}: *a{below}, q{level}: *a{below}}}"
        )
        .unwrap();
    }
    assert!(matches!(objects(&text), Err(SyntaxError::TooMuch { .. })));
}

#[test]
fn deep_nesting_is_refused_in_any_style() {
    let flow = format!("a: {}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let block = (0..200)
        .map(|depth| " ".repeat(depth) + "a:\n")
        .collect::<String>();
    let mut chain = String::from("a0: &a0 [x]\n");
    for level in 1..100 {
        writeln!(chain, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
    }
    for text in [flow, block, chain] {
        let error = objects(&text).unwrap_err();
        assert!(
            error.to_string().starts_with("nested more than 64 levels"),
            "{error:?}"
        );
    }
}

#[test]
fn an_alias_to_itself_is_refused() {
    assert!(matches!(
        objects("a: &a [*a]\n"),
        Err(SyntaxError::Broken { line: 1, .. })
    ));
}

#[test]
fn bytes_that_are_not_utf8_are_an_error_and_not_a_panic() {
    for bytes in [
        &b"a: \xff"[..],
        b"a: \xc3",
        b"a: \xe2\x82",
        b"\x80",
        b"a: \xed\xa0\x80",
    ] {
        let error = read(bytes, |_| {}).unwrap_err();
        assert!(error.to_string().starts_with("not UTF-8"), "{error:?}");
    }
}

#[test]
fn half_a_flow_text_is_an_error() {
    assert!(objects("{\"kind\": \"A\", \"metadata\": {\"na").is_err());
}

#[test]
fn d13_aliases_have_one_limit_for_all_documents_of_a_text() {
    // A hundred values, used a hundred times in each document.
    let items = "- *a\n".repeat(100);
    let document = format!("---\na: &a [{}]\nb:\n{items}", "x,".repeat(100));
    let text = document.repeat(400);
    let mut built = 0;
    let error = read(text.as_bytes(), |_| built += 1).unwrap_err();
    assert!(
        matches!(&error, SyntaxError::TooMuch { message, .. } if message.contains("whole input")),
        "{error:?}"
    );
    assert_eq!(built, 198, "the number of documents of 10,100 values");
}

#[test]
fn d13_a_merge_of_many_sources_reads_the_keys_once() {
    let keys: Vec<String> = (0..100_000).map(|key| format!("k{key}: ")).collect();
    let sources = "*a, ".repeat(50_000);
    let text = format!(
        "a: &a {{x: 1}}\nb: {{{}, <<: [{sources}]}}\n",
        keys.join(", ")
    );
    let began = std::time::Instant::now();
    let mut found = Vec::new();
    read(text.as_bytes(), |node| found.push(node)).unwrap();
    let merged = found[0].get("b").unwrap();
    assert_eq!(merged.map().unwrap().len(), 100_001);
    assert_eq!(merged.get("x").unwrap().text(), Some("1"));
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}
