//! What is wrong with a policy, as a person wants it: where, the line with a caret, the nearest name.

use miette::Diagnostic;
use serde::Serialize;

#[derive(Serialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub policy_id: Option<String>,
    pub severity: &'static str,
    pub message: String,
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub excerpt: Option<String>,
    pub suggestion: Option<String>,
}

impl Problem {
    pub fn plain(policy_id: Option<&str>, message: impl Into<String>) -> Problem {
        Problem {
            policy_id: policy_id.map(str::to_string),
            severity: "error",
            message: message.into(),
            line: None,
            column: None,
            excerpt: None,
            suggestion: None,
        }
    }

    pub fn at(mut self, text: &str, offset: usize, length: usize) -> Problem {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
        let column = text[start..offset].chars().count() + 1;
        let mut stop = (offset + length.max(1)).min(end).max(offset);
        while !text.is_char_boundary(stop) {
            stop -= 1;
        }
        let carets = text[offset..stop].chars().count().max(1);
        let pad: String = text[start..offset]
            .chars()
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        self.line = Some(text[..offset].matches('\n').count() + 1);
        self.column = Some(column);
        self.excerpt = Some(format!("{}\n{pad}{}", &text[start..end], "^".repeat(carets)));
        self
    }
}

/// A diagnostic of the crates; `names` are those that the schema knows.
pub fn problem(policy_id: Option<&str>, found: &dyn Diagnostic, text: &str, names: &[String]) -> Problem {
    let mut message = found.to_string();
    let mut problem = Problem::plain(policy_id, "");
    if let Some(label) = found.labels().into_iter().flatten().next() {
        if let Some(words) = label.label()
            && !message.contains(words)
        {
            message = format!("{message}: {words}");
        }
        problem = problem.at(text, label.offset(), label.len());
        let end = (label.offset() + label.len()).min(text.len());
        problem.suggestion = text.get(label.offset()..end).and_then(|span| nearest_in(span, names));
    }
    // The crates suggest one of several that are as near, now this, now that: theirs is only for want of one of ours.
    let theirs = || {
        found
            .help()
            .map(|help| help.to_string())
            .filter(|help| help.starts_with("did you mean"))
    };
    problem.suggestion = problem.suggestion.or_else(|| nearest_in(&message, names)).or_else(theirs);
    problem.message = own_words(&message);
    problem
}

/// The crates name a policy by an id of their own, which nobody gave it.
fn own_words(message: &str) -> String {
    message
        .strip_prefix("for policy `p")
        .and_then(|rest| rest.split_once("`, "))
        .map_or_else(|| message.to_string(), |(_, rest)| rest.to_string())
}

pub fn all(policy_id: Option<&str>, found: &dyn Diagnostic, text: &str, names: &[String]) -> Vec<Problem> {
    let mut problems = vec![problem(policy_id, found, text, names)];
    for related in found.related().into_iter().flatten().take(20) {
        problems.push(problem(policy_id, related, text, names));
    }
    problems.dedup_by(|a, b| a.message == b.message && a.line == b.line && a.column == b.column);
    problems
}

/// The first unknown word of a text that has a near name among the known ones.
fn nearest_in(text: &str, names: &[String]) -> Option<String> {
    let words = text
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .filter(|word| word.len() > 2);
    for word in words {
        if names.iter().any(|name| name == word) || KEYWORDS.contains(&word) {
            continue;
        }
        let limit = (word.chars().count() / 3).max(1);
        let best = names.iter().map(|name| (distance(word, name), name)).min()?;
        if best.0 <= limit {
            return Some(format!("did you mean `{}`?", best.1));
        }
    }
    None
}

const KEYWORDS: &[&str] = &[
    "permit",
    "forbid",
    "when",
    "unless",
    "principal",
    "action",
    "resource",
    "context",
    "input",
    "output",
    "system",
    "now",
    "has",
    "like",
    "temporal",
    "guardrails",
    "within",
    "formerly",
    "since",
    "previous",
    "for",
    "the",
    "not",
    "attribute",
    "type",
    "found",
];

/// Changes of one letter, swaps counted once, that make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 8 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let mut best = (rows[i - 1][j] + 1)
                .min(row[j - 1] + 1)
                .min(rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
