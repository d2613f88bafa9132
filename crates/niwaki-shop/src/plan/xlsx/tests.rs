//! Spreadsheets by hand, and one that a spreadsheet library has written.

use super::*;
use std::io::Write;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A workbook of these sheets: names and what stands in `sheetData`.
fn book(sheets: &[(&str, &str)]) -> Vec<u8> {
    let texts = ["job", "machine", "time", "A &amp; B", "m"];
    book_with(sheets, &texts.map(|text| format!("<si><t>{text}</t></si>")).concat())
}

/// The same with these texts that cells share.
fn book_with(sheets: &[(&str, &str)], texts: &str) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let packed = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let mut put = |name: &str, text: &str| {
        archive.start_file(name, packed).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    };
    let (mut list, mut links) = (String::new(), String::new());
    for (index, (name, rows)) in sheets.iter().enumerate() {
        list += &format!("<sheet name=\"{name}\" sheetId=\"{index}\" r:id=\"rId{index}\"/>");
        links += &format!("<Relationship Id=\"rId{index}\" Target=\"worksheets/sheet{index}.xml\"/>");
        put(
            &format!("xl/worksheets/sheet{index}.xml"),
            &format!("<worksheet><sheetData>{rows}</sheetData></worksheet>"),
        );
    }
    put("xl/workbook.xml", &format!("<workbook><sheets>{list}</sheets></workbook>"));
    put("xl/_rels/workbook.xml.rels", &format!("<Relationships>{links}</Relationships>"));
    put("xl/sharedStrings.xml", &format!("<sst>{texts}</sst>"));
    archive.finish().unwrap().into_inner()
}

const HEADER: &str = "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"B1\" t=\"s\"><v>1</v></c><c r=\"C1\" t=\"s\"><v>2</v></c></row>";

/// A row of the operations: job, machine, and a cell for the time.
fn row(time: &str) -> String {
    format!(
        "{HEADER}<row r=\"4\"><c r=\"A4\" t=\"s\"><v>3</v></c><c r=\"B4\" t=\"inlineStr\"><is><t>m</t></is></c>{time}</row>"
    )
}

#[test]
fn sheets_are_tables_and_one_other_holds_the_operations() {
    let jobs = "<row><c t=\"s\"><v>0</v></c><c t=\"str\"><v>due</v></c></row><row><c t=\"s\"><v>3</v></c><c><v>9</v></c></row>";
    let bytes = book(&[("Sheet1", &row("<c r=\"C4\"><v>7</v></c>")), ("Jobs", jobs), ("notes", "")]);
    let plan = Plan::read_xlsx(&bytes).unwrap();
    assert_eq!((plan.shop.jobs()[0].name.as_str(), plan.shop.jobs()[0].due), ("A & B", Some(9)));
    assert_eq!(plan.shop.operation(0).modes[0].time, 7);
}

#[test]
fn mistakes_are_one_line() {
    let refusal = |bytes: &[u8]| Plan::read_xlsx(bytes).unwrap_err().to_string();
    assert!(refusal(b"job,machine,time\n").starts_with("expected a spreadsheet (.xlsx): "));
    let of = |time: &str| refusal(&book(&[("operations", &row(time))]));
    assert!(
        of("<c r=\"C4\" t=\"e\"><v>#DIV/0!</v></c>")
            .ends_with("row 4, column 3: expected a value, got #DIV/0!")
    );
    assert!(
        of("<c r=\"C4\" t=\"s\"><v>99</v></c>").ends_with("expected a text of the workbook, got number 99")
    );
    assert!(of("<c r=\"C4\" t=\"str\"><v>x</v></c>").starts_with("operations, row 4, column time: "));
    assert!(of("<c r=\"XFD4\"><v>1</v></c>").contains("expected at most 64 columns"));
    assert!(of("").starts_with("operations, row 4, column time: the cell is empty"));
    // The end of a cell that never began, and a row after the last number that there is.
    let odd = "<row r=\"18446744073709551615\"/><row><v>1</v></c></row>";
    assert!(refusal(&book(&[("operations", odd)])).contains("expected a table of operations"));
    let two = refusal(&book(&[("one", &row("")), ("two", &row(""))]));
    assert!(two.starts_with("sheets `one` and `two`: expected names of tables (settings, jobs"), "{two}");
    assert!(refusal(&book(&[])).contains("expected a table of operations"));
}

#[test]
fn a_formula_without_a_saved_value_is_no_empty_cell() {
    let jobs = |cell: &str| {
        let header = "<row r=\"1\"><c t=\"s\"><v>0</v></c><c t=\"str\"><v>release</v></c></row>";
        let jobs = format!("{header}<row r=\"2\"><c t=\"s\"><v>3</v></c>{cell}</row>");
        Plan::read_xlsx(&book(&[("operations", &row("<c r=\"C4\"><v>7</v></c>")), ("jobs", &jobs)]))
    };
    // As openpyxl writes it, and others: no value, an empty one, a shared formula, a text that was never computed.
    for cell in ["<f>100</f>", "<f>100</f><v></v>", "<f>100</f><v/>", "<f t=\"shared\" si=\"0\"/>"] {
        assert_eq!(
            jobs(&format!("<c r=\"B2\">{cell}</c>")).unwrap_err().to_string(),
            "sheet `jobs`, cell B2: holds a formula without a saved value; open and save the workbook in a spreadsheet \
             program, or write the value"
        );
    }
    assert!(jobs("<c r=\"B2\" t=\"str\"><f>A1</f></c>").is_err());
    let release = |cell: &str| jobs(cell).unwrap().shop.jobs()[0].release;
    assert_eq!(release("<c r=\"B2\"><f>50+50</f><v>100</v></c>"), 100);
    // What a formula has computed to an empty text is empty, like a cell that holds nothing.
    assert_eq!(release("<c r=\"B2\" t=\"str\"><f>\"\"</f><v></v></c>"), 0);
    assert_eq!(release("<c r=\"B2\" s=\"0\"/>"), 0);
}

#[test]
fn no_cell_of_a_sheet_is_a_comment() {
    let named = |name: &str, sheet: &str| {
        let cells = |job: &str| {
            format!("<c t=\"inlineStr\"><is><t>{job}</t></is></c><c t=\"s\"><v>4</v></c><c><v>7</v></c>")
        };
        let rows: String = ["#1001", "[jobs]", name].map(|job| format!("<row>{}</row>", cells(job))).concat();
        let plan = Plan::read_xlsx(&book(&[(sheet, &format!("{HEADER}{rows}"))])).unwrap();
        plan.shop.jobs().iter().map(|job| job.name.clone()).collect::<Vec<_>>()
    };
    for sheet in ["operations", "Sheet1"] {
        assert_eq!(named("# 3", sheet), ["#1001", "[jobs]", "# 3"], "{sheet}");
    }
}

#[test]
fn columns_have_letters() {
    for (column, letters) in [(1, "A"), (26, "Z"), (27, "AA"), (64, "BL"), (16_384, "XFD")] {
        assert_eq!((letters_of(column).as_str(), column_of(letters)), (letters, Some(column)));
    }
}

/// A packed workbook's refusal; it is a small fraction of what it claims to hold.
fn refused(bytes: &[u8]) -> (usize, String) {
    assert!(bytes.len() < 1 << 18, "{} bytes", bytes.len());
    (bytes.len(), Plan::read_xlsx(bytes).unwrap_err().to_string())
}

#[test]
fn bombs_are_one_line() {
    // 40,000 rows with one cell in the last column each: 2,560,000 cells of 24 bytes.
    let wide = "<row><c r=\"BL1\"><v>1</v></c></row>".repeat(40_000);
    let (size, line) = refused(&book(&[("operations", &wide)]));
    let row = (allowed(size as u64) / (64 * PER_CELL + PER_ROW + 1)) + 1;
    assert_eq!(
        line,
        format!(
            "expected a spreadsheet (.xlsx): cells up to sheet `operations`, row {row} hold more than 4 MB and 128 times its {size} bytes"
        )
    );
    let (size, line) = refused(&book_with(&[], &"<si/>".repeat(CELLS + 1)));
    assert!(
        line.ends_with(&format!("it unpacks to more than 4 MB and 128 times its {size} bytes")),
        "{line}"
    );
    let (_, line) = refused(&book(&[("notes", &" ".repeat(LARGEST as usize))]));
    assert!(line.contains("it unpacks to more than 4 MB and 128 times its "), "{line}");
    // A file of half a megabyte may unpack to all that any may.
    assert!(allowed(1 << 19) > LARGEST && allowed(1 << 21) > FULLEST && allowed(0) == FREE);
}

#[test]
fn one_text_in_many_cells_is_counted_in_each() {
    // A text of a megabyte in a thousand cells: less than 4 MB unpacked, a gigabyte of cells.
    let texts = format!("<si><t>{}</t></si>", "a".repeat(1 << 20));
    let rows = "<row><c t=\"s\"><v>0</v></c></row>".repeat(1000);
    let (size, line) = refused(&book_with(&[("operations", &rows)], &texts));
    let row = allowed(size as u64) / ((1 << 20) + PER_CELL + PER_ROW) + 1;
    assert!(
        line.contains(&format!("cells up to sheet `operations`, row {row} hold more than 4 MB")),
        "{line}"
    );
    // Texts that are repeated as tables do are no bomb: twenty thousand rows of three cells.
    let row = "<row><c t=\"s\"><v>3</v></c><c t=\"s\"><v>4</v></c><c><v>7</v></c></row>";
    let bytes = book(&[("operations", &format!("{HEADER}{}", row.repeat(20_000)))]);
    assert_eq!(Plan::read_xlsx(&bytes).unwrap().shop.operations(), 20_000);
    let (_, line) = refused(&book(&[("operations", &format!("{HEADER}{}", row.repeat(600_000)))]));
    assert!(line.contains("it unpacks to more than"), "{line}");
}

#[test]
fn sheets_are_counted() {
    let sheets = vec![("notes", ""); SHEETS + 1];
    let (_, line) = refused(&book(&sheets[..SHEETS]));
    assert!(line.contains("expected a table of operations"), "{line}");
    let (_, line) = refused(&book(&sheets));
    assert_eq!(line, "expected a spreadsheet (.xlsx): expected at most 1000 sheets");
}

#[test]
fn a_library_s_file_says_what_the_template_says() {
    // Made by `tests/fixtures/make.py`: the template with real dates, times of day and lengths in its cells.
    let bytes = include_bytes!("../../../tests/fixtures/template.xlsx");
    let (sheet, csv) = (Plan::read_xlsx(bytes).unwrap(), Plan::read(super::super::template()).unwrap());
    assert_eq!(sheet.shop, csv.shop);
    assert_eq!((sheet.clock.show(90), sheet.objective), (csv.clock.show(90), csv.objective));
}
