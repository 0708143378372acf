package metadata

import (
	"fmt"
	"slices"
	"testing"

	"ggforge/gguf"
)

// reader reads one key, llama.x, and appends errors to failures.
func reader(v gguf.Value, anyLength bool, failures *[]string) *Reader {
	return &Reader{Arch: "llama", Metadata: gguf.Metadata{{Key: "llama.x", Value: v}}, AnyLength: anyLength,
		Fail: func(_ error, format string, args ...any) { *failures = append(*failures, fmt.Sprintf(format, args...)) }}
}

// With AnyLength lists of any length are read, without it they are errors.
func TestLists(t *testing.T) {
	short, long := gguf.Int32s([]int32{3, 4}), gguf.Int32s([]int32{3, 4, 5, 6})
	for _, c := range []struct {
		v         gguf.Value
		anyLength bool
		want      []int
		fails     string
	}{
		{gguf.Uint32(7), false, []int{7, 7, 7}, ""},
		{gguf.Int32s([]int32{1, 2, 3}), false, []int{1, 2, 3}, ""},
		{short, false, []int{3, 4, 0}, `"llama.x" has 2 numbers, want one for each of 3 layers`},
		{long, false, []int{3, 4, 5}, `"llama.x" is [i32 x 4] 3, 4, 5, 6, want 3 whole numbers`},
		{short, true, []int{3, 4, 0}, ""},
		{long, true, []int{3, 4, 5}, ""},
		{gguf.Int32s([]int32{1, -1, 1}), true, []int{1, 0, 1},
			`"llama.x" is -1, want a whole number from 0 to 16777216`},
	} {
		var failures []string
		got := reader(c.v, c.anyLength, &failures).Sizes("x", 3, 0)
		if fails := fmt.Sprint(failures); !slices.Equal(got, c.want) || fails != "["+c.fails+"]" {
			t.Errorf("%v, AnyLength %v: %v, %s, want %v, %s", c.v, c.anyLength, got, fails, c.want, c.fails)
		}
	}
	var failures []string
	if n := reader(short, true, &failures).Size("x", 1); n != 3 || failures != nil {
		t.Errorf("the size is %d, %v, want the first of the list", n, failures)
	}
	if n := reader(short, false, &failures).Size("x", 1); n != 0 || len(failures) != 1 {
		t.Errorf("a list is the size %d, %v, want an error", n, failures)
	}
	if each, ok := reader(short, true, &failures).Flags("x", 3, 3); !ok ||
		!slices.Equal(each, []bool{true, true, false}) {
		t.Errorf("%v %v", each, ok)
	}
	failures = nil
	if each, ok := reader(long, false, &failures).Flags("x", 3, 4); !ok || len(each) != 3 || failures != nil {
		t.Errorf("%v %v %v, want values of further layers ignored", each, ok, failures)
	}
	if reader(short, false, &failures).Flags("x", 3, 4); len(failures) != 1 {
		t.Errorf("%v, want an error", failures)
	}
}

// A key that does not count is missing, and keys that were read are recorded.
func TestCounts(t *testing.T) {
	var failures []string
	r := reader(gguf.Uint32(7), false, &failures)
	r.Counts = func(name string) bool { return name != "x" }
	if n := r.Size("x", 1); n != 1 || r.Has("x") || r.WasRead("x") {
		t.Errorf("the key is %d, read %v", n, r.WasRead("x"))
	}
	if r.Size("x", 7); !r.WasRead("x") {
		t.Error("a key that does not count and changes nothing is not ignored")
	}
}
