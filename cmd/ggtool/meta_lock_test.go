package main

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/io/disk"
)

// TestMetaAtOnce runs a second edit at each system call that a first one makes on the file, its record or its
// temporary file: both succeed and the file has both changes, or one is refused and the file has only the other's
// change.
func TestMetaAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ first, second []string }{
		"in place, in place": {[]string{"--set", "a=str:1"}, []string{"--set", "b=str:2"}},
		"anew, in place":     {[]string{"--set", "a=str:1", "--reserve", "900"}, []string{"--set", "b=str:2"}},
		"in place, anew":     {[]string{"--set", "a=str:1"}, []string{"--set", "b=str:2", "--reserve", "900"}},
		"anew, anew": {[]string{"--set", "a=str:1", "--reserve", "900"},
			[]string{"--set", "b=str:2", "--reserve", "900"}},
	} {
		t.Run(name, func(t *testing.T) {
			both, one := 0, 0
			for at := 0; ; at++ {
				path := write(t, t.TempDir(), "x.gguf", 1)
				if code, _, err := call("meta", "--set", "general.name=str:x", "--reserve", "500", path); code != 0 {
					t.Fatal(err)
				}
				second := -1
				var seen atomic.Int64
				var begun atomic.Bool
				remove := disk.Install(func(to disk.Call, do func(int) (int, error)) (int, error) {
					if strings.HasPrefix(filepath.Base(to.Path), "x.gguf") && seen.Add(1) > int64(at) &&
						begun.CompareAndSwap(false, true) {
						second, _, _ = call(append(append([]string{"meta"}, c.second...), path)...)
					}
					return do(to.N)
				})
				first, _, err := call(append(append([]string{"meta"}, c.first...), path)...)
				remove()
				if second < 0 { // all calls were tried
					break
				}
				f, e := gguf.Open(path)
				if e != nil {
					t.Fatal(e)
				}
				for key, code := range map[string]int{"a": first, "b": second} {
					if _, ok := f.Metadata.Get(key); ok != (code == 0) || code != 0 && code != 2 && code != 3 {
						t.Errorf("call %d: the edit of key %q ended with %d, and the key is there: %v; %v", at, key,
							code, ok, err)
					}
				}
				if first == 0 && second == 0 {
					both++
				} else {
					one++
				}
				f.Close()
				if left, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(left) != 1 {
					t.Errorf("call %d: the folder has %v", at, left)
				}
			}
			if both == 0 || one == 0 {
				t.Errorf("%d times both, %d times one: want some of each", both, one)
			}
		})
	}
}
