package main

import (
	"math"
	"strings"
	"testing"

	"ggforge/gguf"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1}, 5},
		{[]float64{5, 1, 100}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v, want NaN", got)
	}
	values := []float64{2, 1, 3}
	if median(values); values[0] != 2 {
		t.Errorf("median sorts its argument: %v", values)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.000204: "0.000204", 0.0705: "0.0705", 1: "1.00", 47.23: "47.2", 264.4: "264", 24146: "24146",
		math.NaN(): dash, math.Inf(1): dash,
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, want %q", v, got, want)
		}
	}
	if got := ratio(3, 2); got != "1.50" {
		t.Errorf("ratio(3, 2) is %q", got)
	}
	if got := ratio(3, math.NaN()); got != dash {
		t.Errorf("ratio of NaN is %q", got)
	}
}

func TestTable(t *testing.T) {
	table := table{left: 1, head: []string{"type", "x"}}
	table.add("Q4_K", "1.25")
	table.add("±", "10")
	var b strings.Builder
	table.write(&b)
	want := `| type |    x |
| ---- | ---: |
| Q4_K | 1.25 |
| ±    |   10 |

`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestParse(t *testing.T) {
	types, err := parseTypes("Q4_K, Q6_K")
	if err != nil || len(types) != 2 || types[1] != gguf.TypeQ6_K {
		t.Errorf("types are %v, %v", types, err)
	}
	for _, list := range []string{"Q4_X", "Q4_K,", "Q8_1"} {
		if types, err := parseTypes(list); err == nil {
			t.Errorf("parseTypes(%q) is %v, want an error", list, types)
		}
	}
	if all, err := parseTypes(""); err != nil || len(all) < 20 {
		t.Errorf("all types are %v, %v", all, err)
	}
	t.Setenv("ORACLE_ROOT", "")
	opt, err := parse([]string{"-short", "-rounds", "3"})
	if err != nil || opt.rounds != 3 || opt.size != 100e6 {
		t.Errorf("options are %+v, %v", opt, err)
	}
	for _, args := range [][]string{{"x"}, {"-rounds", "0"}, {"-size", "0"}, {"-types", "x"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestPeakMemory(t *testing.T) {
	for summary, want := range map[string]int64{
		"x: 13.3 MB\n0.15 s, 90 MB/s written, peak memory 5.15 MB\n": 5150e3,
		"0.15 s, 90 MB/s written, peak memory 812 kB\n":              812e3,
		"0.15 s, 90 MB/s written":                                    0,
		"peak memory 3 apples":                                       0,
	} {
		got, err := peakMemory(summary)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v, want %d", summary, got, err, want)
		}
	}
}

func TestJobTable(t *testing.T) {
	jobs := []*job{
		{name: "ours", ours: true, copies: true, against: []string{"a", "b"}, sum: "1",
			runs: []cost{{wall: 2, cpu: 4, own: 5e6, rss: 9e6}}},
		{name: "a", inside: true, sum: "2", runs: []cost{{wall: 3, cpu: 3}}},
		{name: "b", inside: true, sum: "1", runs: []cost{{wall: 5, cpu: 7}, {wall: 9, cpu: 7}, {wall: 1, cpu: 7}}},
		{name: cpName, runs: []cost{{wall: 0.5}}},
		{name: cpSyncName, runs: []cost{{wall: 4}}},
	}
	table, differ := jobTable(jobs, true)
	want := "ours 2.00 4.00 0.50 4.00 5.00 9.00 4.00 2.50 same"
	if got := strings.Join(table.rows[0], " "); got != want || differ {
		t.Errorf("row is %q, differ %v, want %q", got, differ, want)
	}
	jobs[0].sum = "3"
	if _, differ := jobTable(jobs, true); !differ {
		t.Error("other bytes pass as the reference's")
	}
}
