"""eBPF objects of users from Python."""

import os
import pathlib
import subprocess

import pytest

import kymograph

DEMO = "examples/traces/demo"
#: Counts jobs by worker and kind of outcome, and tells those of one worker.
PROGRAMS = r"""
typedef unsigned int __u32; typedef unsigned long long __u64;
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *) 1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *) 2;
static long (*bpf_trace_printk)(const char *format, __u32 size, ...) = (void *) 6;
static long (*bpf_ringbuf_output)(void *ring, void *data, __u64 size, __u64 flags) = (void *) 130;
struct job { __u32 worker; __u32 id; } __attribute__((preserve_access_index));
struct place { __u32 worker; __u32 parity; };
struct count { __u64 events; __u64 ids; };
struct sample { __u32 id; };
const struct sample *shown __attribute__((unused));
struct { __uint(type, 1); __uint(max_entries, 100); __type(key, struct place); __type(value, struct count); } places SEC(".maps");
struct { __uint(type, 5); __uint(max_entries, 100); __type(key, __u32); __type(value, __u64); } by_cpu SEC(".maps");
struct { __uint(type, 27); __uint(max_entries, 65536); } samples SEC(".maps");
__u64 total;
static int count(__u32 worker, __u32 id) {
    struct place place = { worker, id & 1 };
    struct count *known = bpf_map_lookup_elem(&places, &place), first = { 1, id };
    if (known) { known->events++; known->ids += id; } else bpf_map_update_elem(&places, &place, &first, 0);
    __u64 one = 1, *times = bpf_map_lookup_elem(&by_cpu, &worker);
    if (times) ++*times; else bpf_map_update_elem(&by_cpu, &worker, &one, 0);
    __sync_fetch_and_add(&total, 1);
    return 0;
}
SEC("kymo/jobs:begin") int began(struct job *job) {
    struct sample sample = { job->id };
    if (job->worker == 1) bpf_ringbuf_output(&samples, &sample, sizeof sample, 0);
    static const char format[] = "job %d";
    if (job->id == 7) bpf_trace_printk(format, sizeof format, job->id);
    return count(job->worker, job->id);
}
SEC("tp_btf/sys_enter") int entered(__u64 *context) { return count(0, 1); }
char LICENSE[] SEC("license") = "Dual MIT/GPL";
"""


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "programs.c").write_text(PROGRAMS)
    words = ["clang", "--target=bpfel", "-mcpu=v3", "-O2", "-g", "-c", "programs.c", "-o", "programs.o"]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("NO CLANG HERE")
    if done.returncode != 0 and "target" in done.stderr:
        pytest.skip(f"NO CLANG FOR EBPF HERE: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return folder / "programs.o"


def test_maps_are_dictionaries(programs: pathlib.Path) -> None:
    run = kymograph.bpf(programs, DEMO)
    jobs = kymograph.open(DEMO).events("jobs:begin", columns=["worker", "id"]).to_polars().rows()
    wanted: dict[tuple[int, int], dict[str, int]] = {}
    for worker, number in jobs:
        count = wanted.setdefault((worker, number & 1), {"events": 0, "ids": 0})
        count["events"] += 1
        count["ids"] += number
    assert run.maps["places"] == wanted
    assert {worker: sum(cpus.values()) for worker, cpus in run.maps["by_cpu"].items()} == {
        worker: sum(1 for of, _ in jobs if of == worker) for worker, _ in jobs
    }
    assert run.maps[".bss"]["total"] == len(jobs)
    assert [(record.map, record.value["id"]) for record in run] == [("samples", number) for worker, number in jobs if worker == 1]
    assert (run.lines, run.lost) == ([f"job {number}" for _, number in jobs if number == 7], {})
    assert run.programs["began"]["runs"] == len(jobs)
    assert repr(run).startswith("<kymograph.BpfRun: maps places, by_cpu")


def test_a_filter_chooses_events(programs: pathlib.Path) -> None:
    run = kymograph.bpf(programs, DEMO, filter="worker == 1")
    assert {worker for worker, _ in run.maps["places"]} == {1}


def test_what_is_wrong_is_said(programs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(kymograph.Error, match="nothing.o"):
        print(kymograph.bpf(tmp_path / "nothing.o", DEMO).maps)
    with pytest.raises(kymograph.QuestionError, match="worke"):
        print(kymograph.bpf(programs, DEMO, filter="worke ==").maps)
    with pytest.raises(kymograph.QuestionError, match="exclude each other"):
        kymograph.bpf(programs, DEMO, command="true")


def test_programs_run_in_the_kernel(programs: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    try:
        with kymograph.bpf(programs) as run:
            with pytest.raises(kymograph.QuestionError, match="until they are stopped"):
                print(run.maps)
            os.getppid()
    except kymograph.Error as error:
        words = ("may not", "doctor", "does not describe", "not permitted")
        assert any(word in str(error) for word in words), error
        pytest.skip(f"NO EBPF HERE: {error}")
    assert run.maps["places"][0, 1]["events"] > 0 and run.maps[".bss"]["total"] >= run.maps["places"][0, 1]["events"]
    again = kymograph.bpf(programs, command=["sh", "-c", "exit 3"])
    assert again.status == 3 and again.maps["by_cpu"][0]
