//! A scanner of XML as spreadsheets have it: elements, attributes, text. Entities are the five that XML has and numbers; nothing
//! is ever expanded, loaded or looked up.

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// An element begins; an empty one ends at once, and its end is told, too.
    Begin(Element<'a>),
    /// The element of this name ends.
    End(&'a str),
    /// Text between elements.
    Text(String),
}

/// The beginning of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    /// Its name without a prefix.
    pub(super) name: &'a str,
    attributes: &'a str,
}

impl Element<'_> {
    /// The value of an attribute, by its name without a prefix.
    pub(super) fn get(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some((name, after)) = rest.split_once('=') {
            let after = after.trim_start();
            let quote = after.chars().next().filter(|mark| matches!(mark, '"' | '\''))?;
            let (value, left) = after[1..].split_once(quote)?;
            if bare(name.trim()) == wanted {
                return Some(plain(value));
            }
            rest = left;
        }
        None
    }
}

/// The scanner.
pub(super) struct Scanner<'a> {
    rest: &'a str,
    /// The end of an empty element, to be told next.
    ends: Option<&'a str>,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { rest: text, ends: None }
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Event<'a>;

    /// The next event; nothing at the end, or where the text is no XML any more.
    fn next(&mut self) -> Option<Event<'a>> {
        if let Some(name) = self.ends.take() {
            return Some(Event::End(name));
        }
        loop {
            let Some(tag) = self.rest.strip_prefix('<') else {
                let (text, _) = self.rest.split_once('<')?;
                self.rest = &self.rest[text.len()..];
                return Some(Event::Text(plain(text)));
            };
            if let Some(rest) = tag.strip_prefix("![CDATA[") {
                let (text, rest) = rest.split_once("]]>")?;
                self.rest = rest;
                return Some(Event::Text(text.to_owned()));
            }
            let skipped =
                [("!--", "-->"), ("?", "?>"), ("!", ">")].into_iter().find(|(mark, _)| tag.starts_with(mark));
            if let Some((mark, end)) = skipped {
                (_, self.rest) = tag[mark.len()..].split_once(end)?;
                continue;
            }
            let (inside, rest) = tag.split_at(end_of_tag(tag)?);
            self.rest = &rest[1..];
            if let Some(name) = inside.strip_prefix('/') {
                return Some(Event::End(bare(name.trim())));
            }
            let (inside, empty) = inside.strip_suffix('/').map_or((inside, false), |inside| (inside, true));
            let split = inside.find(char::is_whitespace).unwrap_or(inside.len());
            let element = Element { name: bare(&inside[..split]), attributes: &inside[split..] };
            self.ends = empty.then_some(element.name);
            return Some(Event::Begin(element));
        }
    }
}

/// Where a tag's `>` is: not within quotes.
fn end_of_tag(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.char_indices().find_map(|(place, mark)| {
        match quote {
            Some(open) if open == mark => quote = None,
            None if matches!(mark, '"' | '\'') => quote = Some(mark),
            None if mark == '>' => return Some(place),
            _ => {}
        }
        None
    })
}

/// A name without its prefix.
fn bare(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, name)| name)
}

/// Text with its entities replaced; what is none stays as it is.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out += before;
        (rest, _) = match entity(after) {
            Some((letter, left)) => (left, out.push(letter)),
            None => (after, out.push('&')),
        };
    }
    out + rest
}

/// The most bytes between the `&` of an entity and its `;`: there may be zeros before a number, but not pages of them.
const LONGEST: usize = 16;

/// The letter of an entity whose `&` is gone over, and what follows it.
fn entity(text: &str) -> Option<(char, &str)> {
    // Without a limit every `&` would look through the whole text after it.
    let end = text.bytes().take(LONGEST + 1).position(|byte| byte == b';')?;
    Some((letter(&text[..end])?, &text[end + 1..]))
}

fn letter(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_attributes_and_text() {
        let text = "<?xml version=\"1.0\"?><!-- <no> --><x:a r:id='1 > 0' t = \"a&amp;b\"><b/>1 &lt; 2&#65;<![CDATA[<&>]]></x:a>";
        let mut events = Scanner::new(text);
        let Some(Event::Begin(element)) = events.next() else { panic!("an element") };
        assert_eq!((element.name, element.get("id").as_deref()), ("a", Some("1 > 0")));
        assert_eq!((element.get("t").as_deref(), element.get("s")), (Some("a&b"), None));
        let Some(Event::Begin(element)) = events.next() else { panic!("an element") };
        assert_eq!((element.name, events.next()), ("b", Some(Event::End("b"))));
        assert_eq!(events.next(), Some(Event::Text("1 < 2A".into())));
        assert_eq!(events.next(), Some(Event::Text("<&>".into())));
        assert_eq!((events.next(), events.next()), (Some(Event::End("a")), None));
    }

    #[test]
    fn an_entity_is_looked_for_nearby_only() {
        assert_eq!(entity("#x0000000000041;b"), Some(('A', "b")));
        assert_eq!((entity("#x00000000000000041;"), entity("amp"), entity("é;")), (None, None, None));
        // Every one of them looks at no more than the next few bytes: at all that follow it would be 10¹³ looks.
        let many = "&".repeat(4 << 20);
        assert_eq!(plain(&many).len(), many.len());
        assert_eq!(plain(&"&amp;".repeat(1 << 20)).len(), 1 << 20);
    }

    #[test]
    fn what_is_no_xml_ends() {
        for text in ["<a", "<a b='", "<![CDATA[x", "<!-- x", "&", "text", "<a b=c>", ""] {
            assert!(Scanner::new(text).count() <= 1, "{text}");
        }
    }
}
