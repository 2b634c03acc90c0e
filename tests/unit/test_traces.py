"""Reading traces: what is a job, what is not, and where a file is wrong."""

from pathlib import Path

import pytest

from connectors.traces.jobs import OnError, TraceRefused
from connectors.traces.load import demand, fleet_gpus, shape
from connectors.traces.reading import fleet_of, read_jobs, read_nodes, read_pods, read_swf
from domain.sizes import ReservationClass, Size

PODS = "name,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time\n"
JOBS = "submit_s,duration_s,num_gpus,vc\n"


def write(folder: Path, text: str) -> Path:
    file = folder / "trace.csv"
    file.write_text(text)
    return file


def test_pods_become_shares_gpus_and_borrowers(tmp_path: Path) -> None:
    rows = "p1,1,460,,LS,0,10\np2,4,1000,V100|A10,BE,5,9\np3,0,0,,LS,0,9\np4,1,1000,,LS,9,9\n"
    trace = read_pods(write(tmp_path, PODS + rows), OnError.STOP)
    assert [job.size for job in trace.jobs] == [Size(share_milli=460), Size(gpus=4)]
    assert trace.jobs[1].models == ("V100", "A10")
    assert trace.jobs[1].klass is ReservationClass.BORROWED
    assert (trace.skipped, trace.malformed) == (1, 1)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (JOBS + "0,x,8,a\n", "line 2, column duration_s"),
        (JOBS + "0,5,8,a\n1,2,3\n", "line 3"),
        ("submit_s,duration_s,vc\n", "line 1: no column num_gpus"),
    ],
)
def test_a_wrong_file_is_refused_whole_with_its_place(
    tmp_path: Path, text: str, where: str
) -> None:
    with pytest.raises(TraceRefused, match=where):
        read_jobs(write(tmp_path, text), OnError.STOP)


def test_wrong_rows_are_counted_when_asked_for(tmp_path: Path) -> None:
    trace = read_jobs(write(tmp_path, JOBS + "0,x,8,a\n0,5,8,a\n"), OnError.SKIP)
    assert (len(trace.jobs), trace.malformed) == (1, 1)
    assert "line 2, column duration_s" in trace.complaints[0]


def test_swf_counts_from_its_first_job(tmp_path: Path) -> None:
    row = "{n} {submit} 0 {run} 4 -1 -1 8 -1 -1 1 7 3 -1 -1 -1 -1 -1\n"
    text = (
        "; a comment\n" + row.format(n=1, submit=100, run=50) + row.format(n=2, submit=130, run=0)
    )
    trace = read_swf(write(tmp_path, text), OnError.STOP)
    assert [(j.start_s, j.end_s, j.size.gpus, j.tenant) for j in trace.jobs] == [(0, 50, 8, "g3")]
    assert trace.malformed == 1


def test_a_load_squeezes_arrivals_and_then_thins_the_fleet(tmp_path: Path) -> None:
    rows = "".join(f"{n * 1000},600,8,vc\n" for n in range(200))
    trace = read_jobs(write(tmp_path, JOBS + rows), OnError.STOP)
    nodes = fleet_of("10x8")
    shaped, kept = shape(trace, nodes, 1.3)
    assert shaped.jobs[-1].start_s < trace.jobs[-1].start_s
    assert {j.end_s - j.start_s for j in shaped.jobs} == {600}
    assert demand(shaped.jobs, 8).mean >= 1.3 * fleet_gpus(kept) * 0.99
    assert shape(trace, nodes, None) == (trace, nodes)


def test_a_silly_fleet_is_refused() -> None:
    for text in ("8", "0x8", "5x9", "axb"):
        with pytest.raises(TraceRefused):
            fleet_of(text)


def test_the_real_traces_have_the_rows_that_they_have(traces: Path) -> None:
    nodes = read_nodes(traces / "openb_2023" / "openb_node_list_gpu_node.csv")
    assert (len(nodes), fleet_gpus(nodes)) == (1213, 6212)
    pods = read_pods(traces / "openb_2023" / "openb_pod_list_default.csv", OnError.STOP)
    assert (len(pods.jobs), pods.skipped, pods.malformed) == (7063, 1088, 1)
    assert len(read_jobs(traces / "philly" / "philly_jobs.csv", OnError.STOP).jobs) == 82_247
