package tasks

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
)

// TestDraw compares the order of tasks with that of llama-perplexity.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		all, n int
		want   []int
	}{
		{HellaSwag, 10, 5, []int{4, 9, 6, 8, 0}}, {Winogrande, 10, 5, []int{4, 8, 5, 6, 0}},
		{MultipleChoice, 10, 5, []int{4, 8, 5, 6, 0}}, {Winogrande, 4, 0, []int{0, 1, 2, 3}},
		{MultipleChoice, 3, 4, []int{0, 1, 2}}, {HellaSwag, 0, 5, []int{}}, {HellaSwag, 1, 5, []int{0}},
	} {
		if got := Draw(c.kind, c.all, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%v %d of %d: %v, want %v", c.kind, c.n, c.all, got, c.want)
		}
	}
	for _, kind := range []Kind{HellaSwag, Winogrande} {
		if got := slices.Sorted(slices.Values(Draw(kind, 3000, 2000))); len(slices.Compact(got)) != 2000 || got[1999] >= 3000 {
			t.Errorf("%v: %d different ones of 2000", kind, len(slices.Compact(got)))
		}
	}
	// The ten thousandth number of the default generator is in the standard of C++.
	r := newTwister(5489)
	for range 9999 {
		r.next()
	}
	if got := r.next(); got != 4123659995 {
		t.Errorf("number 10000 is %d", got)
	}
}

func TestRead(t *testing.T) {
	var warned []string
	warn := func(s ...string) { warned = append(warned, s...) }
	list, err := Read(Winogrande, "f", []byte("0,\"a, _ b\",x,y,2\n1,no gap,x,y,1\n2,_,x,y,3\n3,_ z,x,y\n4,_,\"v\",w, 1 \n"), false, warn)
	if err != nil || len(list) != 2 || len(warned) != 3 {
		t.Fatal(list, warned, err)
	}
	if x := list[0]; x.Before != "a, " || x.After != " b" || !slices.Equal(x.Answers, []string{"x", "y"}) ||
		!slices.Equal(x.Right, []bool{false, true}) || list[1].Answers[0] != `"v"` || !list[1].Right[0] {
		t.Errorf("%+v", list)
	}
	lost, err := Read(Winogrande, "f", []byte("0,_,x,y,2\n1,_,x,y,2\n"), true, warn)
	if err != nil || len(lost) != 1 {
		t.Error("the tool loses the last task", lost, err)
	}
	if lost, err = Read(Winogrande, "f", []byte("0,_,x,y,2\n1,_,x,y,2\n\n"), true, warn); err != nil || len(lost) != 2 {
		t.Error("the tool loses a task of a file that ends in two newlines", lost, err)
	}
	never := []byte("c\n7\n1\n2\n3\n4\n")
	if list, err = Read(HellaSwag, "f", never, true, warn); err != nil || slices.Contains(list[0].Right, true) {
		t.Error(list, err)
	}
	data, err := os.ReadFile("testdata/multiple-choice.bin")
	if err != nil {
		t.Fatal(err)
	}
	if list, err = Read(MultipleChoice, "f", data, false, warn); err != nil || len(list) != 40 || len(list[39].Answers) < 2 {
		t.Error(len(list), err)
	}
	change := func(at int, v uint32) []byte {
		b := slices.Clone(data)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	const first = 4 + 40*4
	question := int(binary.LittleEndian.Uint32(data[first:]))
	for _, c := range []struct {
		kind Kind
		data []byte
		want string
		is   error
	}{
		{HellaSwag, never, "line 2 is \"7\"", fault.Broken}, {HellaSwag, []byte("c\nx\n1\n2\n3\n4\n"), "line 2", fault.Broken},
		{HellaSwag, []byte("c\n1\n"), "2 lines", fault.Broken}, {HellaSwag, nil, "no task", fault.Refused},
		{Winogrande, []byte("x\n"), "no task", fault.Refused}, {MultipleChoice, nil, "4 bytes", fault.Broken},
		{MultipleChoice, change(0, math.MaxUint32), "4294967295 tasks", fault.Broken},
		{MultipleChoice, change(4, 3), "task 1: its offset is 3", fault.Broken},
		{MultipleChoice, change(first, math.MaxUint32), "task 1: 4294967295 bytes", fault.Broken},
		{MultipleChoice, change(first+4+question, 101), "101 answers", fault.Broken},
		{MultipleChoice, change(first+4+question, 0), "task 1", fault.Broken},
		{MultipleChoice, data[:len(data)-1], "task 40", fault.Broken},
	} {
		_, err := Read(c.kind, "f", c.data, false, warn)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.kind, err, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	if a := Accuracy(75, 100); math.Abs(a.Error-math.Sqrt(.75*.25/99)) > 1e-15 || a.Mean != .75 {
		t.Error(a)
	}
	if low, high := Interval(26, 40); math.Abs(low-.495059) > 1e-6 || math.Abs(high-.778655) > 1e-6 {
		t.Error(low, high)
	}
	task := func(right ...bool) Task { return Task{Answers: make([]string, len(right)), Right: right} }
	list := []Task{task(true, false), task(false, true), task(true, false), task(false, true)}
	if c := Chance(list); c.Mean != .5 {
		t.Error(c)
	}
	of := func(right bool, means ...float64) Outcome {
		return Outcome{Right: right, Means: means, Sums: means, Bytes: []int{1, 3}}
	}
	base := []Outcome{of(true, -1, -2), of(true, -3, -1), of(false, -2, -1), of(true, -2, -1)}
	other := []Outcome{of(false, -3, -2), of(true, -3, -1), of(true, -1, -2), of(false, -1, -2)}
	c := Compare(list, base, other)
	// margins: 1 → -1, 2 → 2, -1 → 1, 1 → -1
	if c.Lost != 2 || c.Gained != 1 || c.Accuracy.Mean != -.25 || c.Accuracy.Error != math.Sqrt(3-.25)/4 ||
		c.Margin.Mean != -.5 || math.Abs(c.Margin.Error-math.Sqrt(11./12)) > 1e-15 {
		t.Errorf("%+v", c)
	}
	if o := of(true, -1, -2); !o.RightBySum(&list[0]) || o.RightByBytes(&list[0]) {
		t.Error("by sum the first answer is chosen, by bytes the second one")
	}
}

// FuzzRead checks that any bytes give tasks that can be scored, or an error of kind fault.Broken or fault.Refused.
func FuzzRead(f *testing.F) {
	for i, name := range []string{"hellaswag.txt", "winogrande.csv", "multiple-choice.bin"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), data, false)
		f.Add(uint8(i), data[:len(data)/2], true)
	}
	f.Add(uint8(1), []byte("0,\",_,x,y,1\n"), true)
	f.Fuzz(func(t *testing.T, kind uint8, data []byte, likeTool bool) {
		list, err := Read(Kind(kind%3), "f", data, likeTool, func(...string) {})
		if err != nil {
			if !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Refused) {
				t.Error(err)
			}
			return
		}
		texts := 0
		for _, x := range list {
			if len(x.Answers) == 0 || len(x.Answers) != len(x.Right) {
				t.Errorf("%+v", x)
			}
			texts += len(x.Before) + len(x.After)
			for _, s := range x.Answers {
				texts += len(s)
			}
		}
		if len(list) == 0 || texts > len(data) {
			t.Errorf("%d tasks with %d bytes, of %d", len(list), texts, len(data))
		}
	})
}
