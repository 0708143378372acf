package part

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
)

// env returns a getenv for "NAME=VALUE ...", in which Slurm's variables have short names.
func env(text string) func(string) string {
	short := map[string]string{"id": taskID, "min": least, "max": most, "count": count, "step": step,
		"index": "JOB_COMPLETION_INDEX", "aws": "AWS_BATCH_JOB_ARRAY_INDEX", "size": "AWS_BATCH_JOB_ARRAY_SIZE",
		"seq": "PARALLEL_SEQ", "slot": "PARALLEL_JOBSLOT", "rank": "SKYPILOT_NODE_RANK",
		"nodes": "SKYPILOT_NUM_NODES", "own": Own, "owns": OwnCount}
	set := map[string]string{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		set[short[name]] = value
	}
	return func(name string) string { return set[name] }
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, env, want string }{
		{"1/1", "", "1-of-1"},
		{"3/16", "id=5 min=1 max=8 count=8 step=1", "3-of-16"},
		{"003/016", "", "3-of-16"},
		{"100000/100000", "", "100000-of-100000"},
		{"auto", "id=5 min=1 max=8 count=8 step=1", "5-of-8"},
		{"auto", "id=0 min=0 max=7 count=8 step=1", "1-of-8"},
		{"auto", "id=7 min=0 count=8", "8-of-8"},
		{"auto", "id=14 min=10 max=18 count=5 step=2", "3-of-5"},
		{"auto", "id=4 min=4 max=4 count=1 step=1 index=0", "1-of-1"},
		{"auto/16", "id=7 min=3 max=7 count=2 step=4", "7-of-16"},
		{"auto/16", "index=0", "1-of-16"},
		{"auto/16", "index=15", "16-of-16"},
		{"auto", "aws=0 size=16", "1-of-16"},
		{"auto", "aws=15 size=16", "16-of-16"},
		{"auto/16", "aws=7 size=16", "8-of-16"},
		{"auto/16", "aws=7", "8-of-16"},
		{"auto/16", "seq=1 slot=2", "1-of-16"},
		{"auto/16", "seq=16 slot=2", "16-of-16"},
		{"auto", "rank=0 nodes=4", "1-of-4"},
		{"auto/4", "rank=3 nodes=4", "4-of-4"},
		{"auto", "own=3 owns=16", "3-of-16"},
		{"auto/16", "own=16", "16-of-16"},
		{"auto", "index=2 owns=16", "3-of-16"}, // the number that a Kubernetes index lacks
		{"auto", "seq=3 owns=16", "3-of-16"},
		{"auto/16", "id=7 index=6 own=7", "7-of-16"}, // all agree
		{"auto", "rank=2 nodes=4 aws=2 size=4", "3-of-4"},

		{"", "", `"" is no part: want K/N`},
		{"3", "", "is no part"},
		{"3/", "", "is no part"},
		{"/16", "", "is no part"},
		{"-1/16", "", "is no part"},
		{"+1/16", "", "is no part"},
		{"1/16/2", "", "is no part"},
		{"1/auto", "", "is no part"},
		{"AUTO/16", "index=0", "1-of-16"}, // case is ignored, as in other values of flags
		{"autos", "id=1 min=1 count=1", "is no part"},
		{"auto/", "index=0", "is no part"},
		{"0/16", "", "part 0, want 1 to 16"},
		{"17/16", "", "part 17, want 1 to 16"},
		{"1/0", "", "0 parts, want 1 to 100000"},
		{"1/100001", "", "100001 parts, want 1 to 100000"},
		{"1/99999999999999999999999", "", "99999999999999999999999 parts, want 1 to 100000"},
		{"99999999999999999999999/2", "", "want 1 to 2"},
		{"auto", "", taskID + " (a job array of Slurm), JOB_COMPLETION_INDEX (an Indexed Job of Kubernetes), "},
		{"auto", "", "and GGFORGE_PART (any other scheduler or script) are not set; want one, or K/N such as 3/16"},
		{"auto", "index=3", "JOB_COMPLETION_INDEX is set, but not the number of parts: want auto/N"},
		{"auto", "seq=3", "PARALLEL_SEQ is set, but not the number of parts: want auto/N"},
		{"auto", "own=3", "GGFORGE_PART is set, but not the number of parts: want auto/N"},
		{"auto", "owns=3", "no number of a task"},
		{"auto/16", "slot=2", "no number of a task"},
		{"auto", "own=0 owns=3", "GGFORGE_PART is 0, want 1 to 3"},
		{"auto", "own=4 owns=3", "GGFORGE_PART is 4, want 1 to 3"},
		{"auto", "own=1 owns=0", "GGFORGE_PARTS is 0, want 1 to 100000"},
		{"auto", "aws=0 size=100001", "AWS_BATCH_JOB_ARRAY_SIZE is 100001, want 1 to 100000"},
		{"auto", "aws=4 size=4", "AWS_BATCH_JOB_ARRAY_INDEX is 4, want 0 to 3"},
		{"auto/8", "aws=3 size=4", "AWS_BATCH_JOB_ARRAY_SIZE is 4, want 8"},
		{"auto/8", "own=3 owns=4", "GGFORGE_PARTS is 4, want 8"},
		{"auto/8", "rank=3 nodes=x", `SKYPILOT_NUM_NODES is "x", want a number`},
		{"auto", "rank=3 nodes=4 aws=3 size=5", "AWS_BATCH_JOB_ARRAY_SIZE is 5, and SKYPILOT_NUM_NODES is 4: want the same"},
		{"auto/8", "rank=3 seq=3", "PARALLEL_SEQ is 3, which is part 3, and SKYPILOT_NODE_RANK is 3, which is part 4: unset"},
		{"auto", "index=5 own=7 owns=8",
			"JOB_COMPLETION_INDEX is 5, which is part 6, and GGFORGE_PART is 7, which is part 7: unset one of them"},
		{"auto", "index=8 owns=8", "JOB_COMPLETION_INDEX is 8, want 0 to 7"},
		{"auto", "id=x min=1 count=1", taskID + ` is "x", want a number`},
		{"auto", "id=1 count=1", least + " is not set"},
		{"auto", "id=1 min=1", count + " is not set"},
		{"auto", "id=1 min=1 max=3 count=4 step=1", "want an array without gaps"},
		{"auto", "id=1 min=1 max=7 count=3 step=1", "want an array without gaps"},
		{"auto", "id=1 min=1 max=1 count=1 step=0", "want an array without gaps"},
		{"auto", "id=9 min=1 max=8 count=8 step=1", taskID + " is 9, which is not one of the array"},
		{"auto", "id=0 min=1 max=8 count=8 step=1", "not one of the array"},
		{"auto", "id=2 min=1 max=5 count=3 step=2", "not one of the array"},
		{"auto", "id=1 min=1 count=0", count + " is 0, want 1 to 100000"},
		{"auto", "id=1 min=1 count=100001", count + " is 100001, want 1 to 100000"},
		{"auto/16", "", "no number of a task"},
		{"auto/16", "id=1 index=1", taskID + " is 1, which is part 1, and JOB_COMPLETION_INDEX is 1, which is part 2"},
		{"auto/16", "id=0", taskID + " is 0, want 1 to 16"},
		{"auto/16", "id=17", taskID + " is 17, want 1 to 16"},
		{"auto/16", "index=16", "JOB_COMPLETION_INDEX is 16, want 0 to 15"},
		{"auto/16", "index=-1", `JOB_COMPLETION_INDEX is "-1", want a number`},
	} {
		p, err := Parse(c.text, env(c.env))
		switch {
		case err == nil && p.String() != c.want:
			t.Errorf("%q, %q: %v, want %s", c.text, c.env, p, c.want)
		case err != nil && (!errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q, %q: %v, want %s", c.text, c.env, err, c.want)
		}
	}
}

// TestRange checks that shares follow each other, are about equal, and cover everything.
func TestRange(t *testing.T) {
	for _, n := range []int{0, 1, 5, 16, 100, 12345, math.MaxInt} {
		for _, of := range []int{1, 2, 3, 16, 777, Most} {
			end, small, large := 0, math.MaxInt, 0
			for k := 1; k <= of; k++ {
				a, b := Part{k, of}.Range(n)
				if a != end || b < a {
					t.Fatalf("part %d of %d of %d things: [%d, %d), the one before ends at %d", k, of, n, a, b, end)
				}
				end, small, large = b, min(small, b-a), max(large, b-a)
			}
			if end != n || large-small > 1 {
				t.Errorf("%d parts of %d things: end at %d, have %d to %d", of, n, end, small, large)
			}
		}
	}
	if a, b := (Part{}).Range(7); a != 0 || b != 7 {
		t.Errorf("the zero Part has [%d, %d), want all 7", a, b)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"3/16", "auto", "auto/16", "1/100001", "0/0", "/", "auto/x"} {
		f.Add(text, "5", "1", "8", "8", "1", "")
	}
	f.Add("auto", "9223372036854775807", "0", "9", "100000", "2147483647", "")
	f.Add("auto/3", "", "", "", "", "", "AWS_BATCH_JOB_ARRAY_INDEX=2 AWS_BATCH_JOB_ARRAY_SIZE=3")
	f.Add("auto", "", "", "", "", "", "GGFORGE_PART=2 GGFORGE_PARTS=3 PARALLEL_SEQ=2 SKYPILOT_NODE_RANK=1")
	f.Fuzz(func(t *testing.T, text, id, from, to, n, apart, others string) {
		set := map[string]string{taskID: id, least: from, most: to, count: n, step: apart}
		for _, word := range strings.Fields(others) {
			name, value, _ := strings.Cut(word, "=")
			set[name] = value
		}
		p, err := Parse(text, func(name string) string { return set[name] })
		if err != nil {
			if !errors.Is(err, fault.Usage) || p != (Part{}) {
				t.Fatalf("%v, %v", p, err)
			}
			return
		}
		if p.K < 1 || p.K > p.N || p.N > Most {
			t.Fatalf("%q: %v", text, p)
		}
		again, err := Parse(fmt.Sprintf("%d/%d", p.K, p.N), nil)
		if err != nil || again != p {
			t.Fatalf("%v is %v as text, %v", p, again, err)
		}
	})
}

// TestDocumented compares the table with the one in docs/clusters.md, and the help with the table.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/clusters.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Schedulers {
		of := "`auto/N`"
		if s.Count != "" {
			of = "`" + s.Count + "`"
		}
		row := fmt.Sprintf("| %s | `%s` | %d | %s |", s.Name, s.Index, s.First, of)
		if !strings.Contains(string(doc), "\n"+row) {
			t.Errorf("docs/clusters.md has no row %s", row)
		}
		words := strings.Fields(s.Name)
		if i := slices.Index(words, "of"); i > 0 {
			words = words[i+1:]
		}
		if name := words[0]; s.Index != Own && !strings.Contains(AutoHelp, name) {
			t.Errorf("the help has no %s: %s", name, AutoHelp)
		}
	}
}
