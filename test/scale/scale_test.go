package main

import (
	"math"
	"reflect"
	"testing"

	"ggforge/writer"
)

// TestPlan makes the checkpoint and its plan: the shares have all bytes of it, and the file those of its tensors.
func TestPlan(t *testing.T) {
	m, err := makeModel(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if m.weights < 1e12 || m.shards != 62 || m.bytes < 2*m.weights {
		t.Errorf("%+v", m)
	}
	shares, tensors, size, err := plan(t.Context(), m.dir, "Q8_0")
	if err != nil {
		t.Fatal(err)
	}
	var read, written, elements, least, most int64
	for _, s := range shares {
		var work int64
		for _, r := range s {
			read, written, elements, work = read+r.Read, written+r.Written, elements+r.Elements, work+r.Work
		}
		if most = max(most, work); least == 0 || work < least {
			least = work
		}
	}
	if len(shares) != parts || tensors < 1000 || elements != m.weights || read < m.bytes || read > m.bytes+m.bytes/1000 ||
		size < written || size > written+written/1000 {
		t.Errorf("%d shares, %d tensors, %d elements, %d bytes read of %d, %d written, file of %d", len(shares), tensors, elements,
			read, m.bytes, written, size)
	}
	if float64(most) > 1.01*float64(least) {
		t.Errorf("shares take from %d to %d ps", least, most)
	}
}

// TestSimulate compares simulations with what can be computed by hand, and with each other.
func TestSimulate(t *testing.T) {
	var shares []writer.Share
	for range 10 {
		shares = append(shares, writer.Share{{Tensor: "a", Elements: 40 * unitWork, Read: 80 * unitWork, Written: 20 * unitWork,
			Work: 8e12}})
	}
	w := world{objects: true, cpus: 8, link: 1e12, stream: 1e12, read: 1e12, write: 1e12}
	run := func(w world) *outcome {
		t.Helper()
		o := simulate(w, shares, 10*20*unitWork, 1<<20, 2, 5)
		if again := simulate(w, shares, 10*20*unitWork, 1<<20, 2, 5); !reflect.DeepEqual(again, o) {
			t.Errorf("again %+v, was %+v", again, o)
		}
		return o
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.1*want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	o := run(w)
	near("computing decides", o.seconds, 2+1)
	near("bytes read", o.readMean, 80*unitWork)
	near("bytes sent", o.sentMean, 20*unitWork)
	near("GET", float64(o.gets), 10*(5+80*unitWork/rangeBytes))
	near("PUT", float64(o.puts), 10*20*unitWork/(1<<20))
	if o.kills != 0 || math.Abs(o.readShare-1) > 1e-9 || math.Abs(o.sentShare-1) > 1e-9 {
		t.Errorf("%+v", o)
	}
	slow := w
	slow.read = 1e9
	near("reading decides", run(slow).seconds, 2+10*80*unitWork/1e9)
	slow = w
	slow.write = 1e8
	near("writing decides", run(slow).seconds, 2+10*20*unitWork/1e8)
	slow.kills, slow.back = 20, 5
	killed := run(slow)
	if killed.kills == 0 || killed.readShare <= 1 || killed.sentShare <= 1 || killed.readShare > 2 || killed.sentMean < 20*unitWork {
		t.Errorf("killed: %+v", killed)
	}
	slow = w
	slow.link, slow.slow = 1e9, 0.1
	if a, b := run(slow), run(world{objects: true, cpus: 8, link: 1e9, stream: 1e12, read: 1e12, write: 1e12}); a.seconds < 2*b.seconds {
		t.Errorf("with a slow machine %v s, without %v s", a.seconds, b.seconds)
	}
}
