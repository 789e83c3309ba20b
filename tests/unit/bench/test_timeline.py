import xml.etree.ElementTree as ET

from fleetapp.bench.timeline import svg
from fleetapp.engine.pipe import StepRecord
from fleetapp.wire.frames import StageTiming

NS = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_sound_xml_with_a_bar_per_inference_and_the_fill_below() -> None:
    records = [
        StepRecord(
            1,
            n,
            n * 1000,
            n * 1000 + 2000,
            0,
            ("a",),
            (1,),
            (StageTiming(n * 1000, 0, 900, 0), StageTiming(n * 1000 + 1000, 0, 900, 0)),
        )
        for n in range(4)
    ]
    root = ET.fromstring(svg(records, "two stages < three & more"))
    bars = [r for r in root.iter(f"{NS}rect") if r.find(f"{NS}title") is not None]
    assert len(bars) == 8
    assert all(float(b.get("width", "0")) > 0 for b in bars)
    assert root.find(f"{NS}title") is not None
    assert root.find(f"{NS}polyline") is not None
    texts = [t.text for t in root.iter(f"{NS}text")]
    assert "two stages < three & more" in texts
    assert {"stage 0", "stage 1"} <= set(texts)


def test_a_picture_of_nothing_is_a_picture() -> None:
    ET.fromstring(svg([], "nothing"))
