//! Thrift's compact protocol, as far as parquet's headers need it.

const INT: u8 = 5;
const BINARY: u8 = 8;
const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// What a list's elements are.
pub(super) const INTS: u8 = INT;
pub(super) const TEXTS: u8 = BINARY;

/// Structs that are being written, from the outermost to the innermost.
#[derive(Debug)]
pub(super) struct Thrift {
    bytes: Vec<u8>,
    /// The number of the last field of each.
    last: Vec<u8>,
}

impl Thrift {
    /// Begins a struct.
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), last: vec![0] }
    }

    /// Ends it.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// A field's number and kind; numbers rise by less than 16 in all of parquet's structs.
    fn field(&mut self, id: u8, kind: u8) {
        if let Some(last) = self.last.last_mut() {
            self.bytes.push((id - *last) << 4 | kind);
            *last = id;
        }
    }

    fn unsigned(&mut self, mut number: u64) {
        while number >= 128 {
            self.bytes.push(number as u8 | 128);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// A number as an element of a list.
    pub(super) fn element(&mut self, number: i64) {
        self.unsigned(((number << 1) ^ (number >> 63)) as u64);
    }

    /// A text as an element of a list.
    pub(super) fn text_element(&mut self, text: &str) {
        self.unsigned(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A number. Those of 32 and of 64 bits are written alike but for their kind.
    pub(super) fn int(&mut self, id: u8, number: i64) {
        self.field(id, INT);
        self.element(number);
    }

    /// A number of 64 bits.
    pub(super) fn long(&mut self, id: u8, number: u64) {
        self.field(id, INT + 1);
        self.element(number as i64);
    }

    /// A text.
    pub(super) fn text(&mut self, id: u8, text: &str) {
        self.field(id, BINARY);
        self.text_element(text);
    }

    /// The head of a list; its elements follow.
    pub(super) fn list(&mut self, id: u8, kind: u8, count: usize) {
        self.field(id, LIST);
        if count < 15 {
            self.bytes.push((count as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            self.unsigned(count as u64);
        }
    }

    /// A struct as a field.
    pub(super) fn inner(&mut self, id: u8, fill: impl FnOnce(&mut Self)) {
        self.field(id, STRUCT);
        self.struct_element(fill);
    }

    /// A struct as an element of a list.
    pub(super) fn struct_element(&mut self, fill: impl FnOnce(&mut Self)) {
        self.last.push(0);
        fill(self);
        self.last.pop();
        self.bytes.push(0);
    }
}
