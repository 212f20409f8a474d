//! The faces for programs.

use expect_test::expect;

use super::*;

#[test]
fn as_json() {
    let report = Report { events_discarded: 7, ..Report::default() };
    let out = written(|out| json::write_answer(&[&threads(), &kinds()], &report, out));
    let value: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(value["events_discarded"], 7);
    expect![[r#"
        {"tables":[{"class":"per-thread","title":"Threads by run time","span":{"begin":1457113582000000000,"end":1457113583580000000},"columns":[{"name":"thread","title":"Thread","class":"process","unit":null},{"name":"run_time","title":"Run time","class":"duration","unit":null},{"name":"share","title":"Share","class":"ratio","unit":null},{"name":"runs","title":"Runs","class":"number","unit":"runs"},{"name":"read","title":"Read","class":"size","unit":null}],"rows":[
        [{"name":"bash","pid":123,"tid":123},{"value":12345678,"low":11900000,"high":14000000},{"value":0.0078,"low":0.0075,"high":0.0089},{"value":17,"low":17,"high":null},4096],
        [{"name":"kworker/u16:3-events_unbound","pid":4297,"tid":4297},9876543,0.00625,12345,{"value":0,"low":0,"high":1048576}],
        [{"name":null,"pid":null,"tid":7},2000000,0.0013,3,{"unknown":true}],
        [{"unknown":true},999,6e-7,1,null]],"omitted":1234},{"class":"kinds","title":"Kinds of cells","span":null,"columns":[{"name":"class","title":"Class","class":"string","unit":null},{"name":"cell","title":"Cell","class":"mixed","unit":null}],"rows":[
        ["",null],
        ["",{"unknown":true}],
        ["bool",{"class":"bool","value":true}],
        ["number",{"class":"number","value":18446744073709551615}],
        ["number",{"class":"number","value":-9223372036854775808}],
        ["number",{"class":"number","value":0.1}],
        ["number",{"class":"number","value":1e+300}],
        ["number",{"class":"number","value":"inf"}],
        ["number",{"class":"number","value":"-inf"}],
        ["number",{"class":"number","value":{"unknown":true}}],
        ["string",{"class":"string","value":"two words"}],
        ["ratio",{"class":"ratio","value":{"value":0.5,"low":0.0,"high":null}}],
        ["timestamp",{"class":"timestamp","value":-1}],
        ["timestamp",{"class":"timestamp","value":1457113582000000000}],
        ["duration",{"class":"duration","value":0}],
        ["duration",{"class":"duration","value":999600}],
        ["duration",{"class":"duration","value":{"value":12345679,"low":12345678,"high":12345680}}],
        ["duration",{"class":"duration","value":{"value":1500,"low":0,"high":null}}],
        ["duration",{"class":"duration","value":{"value":1500,"low":900,"high":3000000}}],
        ["duration",{"class":"duration","value":18446744073709551615}],
        ["size",{"class":"size","value":1048575}],
        ["bitrate",{"class":"bitrate","value":1500000000.0}],
        ["time-range",{"class":"time-range","value":{"begin":1457113582000000000,"end":1457113582000000001}}],
        ["time-range",{"class":"time-range","value":{"begin":null,"end":1457113582000000000}}],
        ["time-range",{"class":"time-range","value":{"begin":1457113582000000000,"end":null}}],
        ["syscall",{"class":"syscall","value":"openat"}],
        ["process",{"class":"process","value":{"name":"java","pid":100,"tid":107}}],
        ["process",{"class":"process","value":{"name":null,"pid":null,"tid":null}}],
        ["path",{"class":"path","value":"/tmp/a b"}],
        ["fd",{"class":"fd","value":-1}],
        ["irq",{"class":"irq","value":{"hard":true,"number":42,"name":"ahci"}}],
        ["irq",{"class":"irq","value":{"hard":false,"number":42,"name":null}}],
        ["cpu",{"class":"cpu","value":3}],
        ["disk",{"class":"disk","value":"sda"}],
        ["netif",{"class":"netif","value":"eth0"}]],"omitted":0}],"events_discarded":7,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}
    "#]].assert_eq(&out);
}

#[test]
fn as_csv() {
    let out = written(|out| csv::write(&[&threads()], out));
    expect![[r#"
        thread,thread_pid,thread_tid,run_time,run_time_low,run_time_high,share,share_low,share_high,runs,runs_low,runs_high,read,read_low,read_high
        bash,123,123,12345678,11900000,14000000,0.0078,0.0075,0.0089,17,17,inf,4096,4096,4096
        kworker/u16:3-events_unbound,4297,4297,9876543,9876543,9876543,0.00625,0.00625,0.00625,12345,12345,12345,0,0,1048576
        NA,NA,7,2000000,2000000,2000000,0.0013,0.0013,0.0013,3,3,3,NA,NA,NA
        NA,NA,NA,999,999,999,6e-7,6e-7,6e-7,1,1,1,,,
    "#]].assert_eq(&out.replace("\r\n", "\n"));
    let quotes = Table {
        rows: ["", "a,b", "say \"x\"", "two\nlines", "# no comment", " space"]
            .iter()
            .map(|text| vec![Cell::Text((*text).to_owned())])
            .collect(),
        ..Table::new("quotes", "Quotes", vec![Column::new("text", "Text", CellClass::Text)])
    };
    let out = written(|out| csv::write(&[&quotes, &kinds()], out));
    expect![[r##"
        # quotes: Quotes
        text

        "a,b"
        "say ""x"""
        "two
        lines"
        "# no comment"
        " space"

        # kinds: Kinds of cells
        class,cell,cell_low,cell_high
        ,,,
        ,NA,NA,NA
        bool,true,,
        number,18446744073709551615,18446744073709551615,18446744073709551615
        number,-9223372036854775808,,
        number,0.1,,
        number,1e300,,
        number,inf,,
        number,-inf,,
        number,NA,,
        string,two words,,
        ratio,0.5,0,inf
        timestamp,-1,,
        timestamp,1457113582000000000,,
        duration,0,0,0
        duration,999600,999600,999600
        duration,12345679,12345678,12345680
        duration,1500,0,inf
        duration,1500,900,3000000
        duration,18446744073709551615,18446744073709551615,18446744073709551615
        size,1048575,1048575,1048575
        bitrate,1500000000,1500000000,1500000000
        time-range,1457113582000000000..1457113582000000001,,
        time-range,..1457113582000000000,,
        time-range,1457113582000000000..,,
        syscall,openat,,
        process,java (107),,
        process,NA,,
        path,/tmp/a b,,
        fd,-1,,
        irq,ahci,,
        irq,42,,
        cpu,3,,
        disk,sda,,
        netif,eth0,,
    "##]]
    .assert_eq(&out.replace("\r\n", "\n"));
}

#[test]
fn as_lami() {
    let renamed = Table { title: "Threads of bash".to_owned(), ..threads() };
    let known = Answer { tables: vec![Table { rows: Vec::new(), ..threads() }] };
    let out = written(|out| lami::write(&[&threads(), &renamed, &kinds()], &known, &Report::default(), out));
    let results = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(schema::problems(&results, "results"), Vec::<String>::new());
    expect![[r#"
        {"results":[{"time-range":{"class":"time-range","begin":{"class":"timestamp","value":1457113582000000000},"end":{"class":"timestamp","value":1457113583580000000}},"class":"per-thread","data":[
        [{"class":"process","name":"bash","pid":123,"tid":123},{"class":"duration","value":12345678,"low":11900000,"high":14000000},{"class":"ratio","value":0.0078,"low":0.0075,"high":0.0089},{"class":"number","value":17,"low":17,"high":"+inf"},{"class":"size","value":4096}],
        [{"class":"process","name":"kworker/u16:3-events_unbound","pid":4297,"tid":4297},{"class":"duration","value":9876543},{"class":"ratio","value":0.00625},{"class":"number","value":12345},{"class":"size","value":0,"low":0,"high":1048576}],
        [{"class":"process","tid":7},{"class":"duration","value":2000000},{"class":"ratio","value":0.0013},{"class":"number","value":3},{"class":"unknown"}],
        [{"class":"unknown"},{"class":"duration","value":999},{"class":"ratio","value":6e-7},{"class":"number","value":1},null]]},{"time-range":{"class":"time-range","begin":{"class":"timestamp","value":1457113582000000000},"end":{"class":"timestamp","value":1457113583580000000}},"class":{"inherit":"per-thread","title":"Threads of bash"},"data":[
        [{"class":"process","name":"bash","pid":123,"tid":123},{"class":"duration","value":12345678,"low":11900000,"high":14000000},{"class":"ratio","value":0.0078,"low":0.0075,"high":0.0089},{"class":"number","value":17,"low":17,"high":"+inf"},{"class":"size","value":4096}],
        [{"class":"process","name":"kworker/u16:3-events_unbound","pid":4297,"tid":4297},{"class":"duration","value":9876543},{"class":"ratio","value":0.00625},{"class":"number","value":12345},{"class":"size","value":0,"low":0,"high":1048576}],
        [{"class":"process","tid":7},{"class":"duration","value":2000000},{"class":"ratio","value":0.0013},{"class":"number","value":3},{"class":"unknown"}],
        [{"class":"unknown"},{"class":"duration","value":999},{"class":"ratio","value":6e-7},{"class":"number","value":1},null]]},{"time-range":{"class":"time-range","begin":{"class":"timestamp","low":"-inf","high":"+inf"},"end":{"class":"timestamp","low":"-inf","high":"+inf"}},"class":{"title":"Kinds of cells","column-descriptions":[{"title":"Class","class":"string"},{"title":"Cell","class":"mixed"}]},"data":[
        [{"class":"string","value":""},null],
        [{"class":"string","value":""},{"class":"unknown"}],
        [{"class":"string","value":"bool"},{"class":"bool","value":true}],
        [{"class":"string","value":"number"},{"class":"number","value":18446744073709551615}],
        [{"class":"string","value":"number"},{"class":"number","value":-9223372036854775808}],
        [{"class":"string","value":"number"},{"class":"number","value":0.1}],
        [{"class":"string","value":"number"},{"class":"number","value":1e+300}],
        [{"class":"string","value":"number"},{"class":"number","low":"+inf","high":"+inf"}],
        [{"class":"string","value":"number"},{"class":"number","low":"-inf","high":"-inf"}],
        [{"class":"string","value":"number"},{"class":"unknown"}],
        [{"class":"string","value":"string"},{"class":"string","value":"two words"}],
        [{"class":"string","value":"ratio"},{"class":"ratio","value":0.5,"low":0.0,"high":"+inf"}],
        [{"class":"string","value":"timestamp"},{"class":"timestamp","value":-1}],
        [{"class":"string","value":"timestamp"},{"class":"timestamp","value":1457113582000000000}],
        [{"class":"string","value":"duration"},{"class":"duration","value":0}],
        [{"class":"string","value":"duration"},{"class":"duration","value":999600}],
        [{"class":"string","value":"duration"},{"class":"duration","value":12345679,"low":12345678,"high":12345680}],
        [{"class":"string","value":"duration"},{"class":"duration","value":1500,"low":0,"high":"+inf"}],
        [{"class":"string","value":"duration"},{"class":"duration","value":1500,"low":900,"high":3000000}],
        [{"class":"string","value":"duration"},{"class":"duration","value":18446744073709551615}],
        [{"class":"string","value":"size"},{"class":"size","value":1048575}],
        [{"class":"string","value":"bitrate"},{"class":"bitrate","value":1500000000.0}],
        [{"class":"string","value":"time-range"},{"class":"time-range","begin":{"class":"timestamp","value":1457113582000000000},"end":{"class":"timestamp","value":1457113582000000001}}],
        [{"class":"string","value":"time-range"},{"class":"time-range","begin":{"class":"timestamp","low":"-inf","high":"+inf"},"end":{"class":"timestamp","value":1457113582000000000}}],
        [{"class":"string","value":"time-range"},{"class":"time-range","begin":{"class":"timestamp","value":1457113582000000000},"end":{"class":"timestamp","low":"-inf","high":"+inf"}}],
        [{"class":"string","value":"syscall"},{"class":"syscall","name":"openat"}],
        [{"class":"string","value":"process"},{"class":"process","name":"java","pid":100,"tid":107}],
        [{"class":"string","value":"process"},{"class":"process"}],
        [{"class":"string","value":"path"},{"class":"path","path":"/tmp/a b"}],
        [{"class":"string","value":"fd"},{"class":"fd","fd":-1}],
        [{"class":"string","value":"irq"},{"class":"irq","hard":true,"nr":42,"name":"ahci"}],
        [{"class":"string","value":"irq"},{"class":"irq","hard":false,"nr":42}],
        [{"class":"string","value":"cpu"},{"class":"cpu","id":3}],
        [{"class":"string","value":"disk"},{"class":"disk","name":"sda"}],
        [{"class":"string","value":"netif"},{"class":"netif","name":"eth0"}]]}],"events_discarded":0,"events_discarded_is_lower_bound":false,"packets_lost":0,"complete":true}
    "#]].assert_eq(&out);
    let description = lami::LamiDescription { name: "cpu", title: "CPUs", description: "Who used them." };
    let metadata = lami::metadata(description, &known);
    assert_eq!(schema::problems(&metadata, "metadata"), Vec::<String>::new());
    expect![[r#"{"mi-version":{"major":1,"minor":0},"version":{"major":0,"minor":1,"patch":0},"title":"CPUs","description":"Who used them.","tags":["kymograph","cpu"],"table-classes":{"per-thread":{"title":"Threads by run time","column-descriptions":[{"title":"Thread","class":"process"},{"title":"Run time","class":"duration"},{"title":"Share","class":"ratio"},{"title":"Runs","class":"number","unit":"runs"},{"title":"Read","class":"size"}]}}}"#]].assert_eq(&metadata.to_string());
}
