//! A notebook as a page: its words, its cells, and what they showed when they were last run.

use anyhow::Context;
use serde_json::Value;
use std::path::Path;

pub(super) fn is_one(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "ipynb")
}

/// The cells of a notebook as Markdown.
pub(super) fn markdown(text: &str) -> anyhow::Result<String> {
    let notebook: Value = serde_json::from_str(text).context("a notebook is not JSON")?;
    let cells = notebook["cells"].as_array().context("a notebook has no cells")?;
    let (mut out, mut shown) = (String::new(), 0);
    for cell in cells {
        let source = joined(&cell["source"]);
        if cell["cell_type"] == "markdown" {
            out += &format!("{source}\n\n");
            continue;
        }
        out += &format!("```python\n{source}\n```\n\n");
        for output in cell["outputs"].as_array().into_iter().flatten() {
            let data = &output["data"];
            if let Some(html) = Some(joined(&data["text/html"])).filter(|html| !html.is_empty()) {
                // A blank line would end the block of HTML.
                let html = html.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n");
                shown += 1;
                let named = format!("tabindex=\"0\" role=\"region\" aria-label=\"Output {shown}\"");
                out += &format!("<div class=\"output\" {named}>\n{html}\n</div>\n\n");
            } else {
                let text = joined(&output["text"]) + &joined(&data["text/plain"]);
                out += &format!("```text\n{}\n```\n\n", text.trim_end());
            }
        }
    }
    Ok(out)
}

/// Notebooks keep a text as lines, or whole.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_with_what_they_showed() {
        let text = r##"{"cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "words"]},
            {"cell_type": "code", "source": "1 + 1", "outputs": [
                {"output_type": "stream", "text": ["said\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"], "text/html": ["<b>\n\n2</b>"]}}]}]}"##;
        assert_eq!(
            markdown(text).unwrap(),
            "# Title\nwords\n\n```python\n1 + 1\n```\n\n```text\nsaid\n```\n\n<div class=\"output\" tabindex=\"0\" role=\"region\" aria-label=\"Output 1\">\n<b>\n2</b>\n</div>\n\n"
        );
        assert!(markdown("{}").is_err());
    }
}
