package partfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/internal/io/part"
	"ggforge/writer"
)

// job returns a job of seven items, each a byte.
func job(t *testing.T) *Job {
	return &Job{Out: filepath.Join(t.TempDir(), "out"), Kind: "bytes", Items: 7,
		Facts: []Fact{{"model", "m"}, {"text", "x"}}}
}

// write writes parts.
func write(t *testing.T, j *Job, n int, which ...int) {
	t.Helper()
	for _, k := range which {
		p := part.Part{K: k, N: n}
		from, to := p.Range(j.Items)
		size, err := j.Write(context.Background(), p,
			[]Section{Bytes([]byte("0123456"[from:to])), Bytes([]byte{byte(k)})}, writer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(j.Path(p)); err != nil || info.Size() != size {
			t.Fatalf("%v, %v, want %d bytes", info, err, size)
		}
	}
}

// gather returns the first sections of all parts, joined.
func gather(j *Job) (string, error) {
	var text string
	_, err := j.Gather(context.Background(), func(sections [][]byte) error {
		text += string(sections[0])
		return nil
	})
	return text, err
}

func TestGather(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 12} {
		j := job(t)
		order := make([]int, n)
		for i := range order {
			order[i] = (i*5+3)%n + 1 // 5 divides no n
		}
		write(t, j, n, order...)
		write(t, j, n, n/2+1) // again
		if text, err := gather(j); text != "0123456" || err != nil {
			t.Errorf("%d parts: %q, %v", n, text, err)
		}
	}
	if _, err := gather(job(t)); !errors.Is(err, fault.Incomplete) ||
		!strings.Contains(err.Error(), "out.part-1-of-N") {
		t.Errorf("no part: %v", err)
	}
}

// TestWrong checks that errors name the parts that are missing, damaged or of another job.
func TestWrong(t *testing.T) {
	other := func(change func(o *Job)) func(j *Job) {
		return func(j *Job) {
			o := *j
			o.Facts = slices.Clone(j.Facts)
			change(&o)
			write(t, &o, 3, 2)
		}
	}
	edit := func(change func(b []byte) []byte) func(j *Job) {
		return func(j *Job) {
			path := j.Path(part.Part{K: 2, N: 3})
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(b), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		do     func(j *Job)
		kind   error
		want   string
		check  string // part of Check's error
		forced bool   // whether --force is needed to replace it
	}{
		{"missing", func(j *Job) { os.Remove(j.Path(part.Part{K: 2, N: 3})) }, fault.Incomplete, "2/3 (", "", false},
		{"flipped", edit(func(b []byte) []byte { b[len(b)-33] ^= 1; return b }), fault.Broken,
			"its SHA-256 is", "", false},
		{"short", edit(func(b []byte) []byte { return b[:len(b)-1] }), fault.Broken, "", "", false},
		{"empty", edit(func([]byte) []byte { return nil }), fault.Broken, "is no part of a job",
			"is no part of a job", true},
		{"notes", edit(func([]byte) []byte { return []byte("notes of somebody's") }), fault.Broken,
			"is no part of a job", "is no part of a job", true},
		{"model", other(func(o *Job) { o.Facts[0].Value = "n" }), fault.Refused, `its model is "n", want "m"`,
			`its model is "n"`, true},
		{"more", other(func(o *Job) { o.Facts = append(o.Facts, Fact{"way", "long"}) }), fault.Refused,
			`its way is "long"`, `its way is "long"`, true},
		{"less", other(func(o *Job) { o.Facts = o.Facts[:1] }), fault.Refused, "has no text",
			"has no text", true},
		{"kind", other(func(o *Job) { o.Kind = "bits" }), fault.Refused, `"bits", want "bytes"`, `"bits"`, true},
		{"items", other(func(o *Job) { o.Items = 6 }), fault.Refused, "items 2 to 4 of 6", "of 6", true},
	} {
		j := job(t)
		write(t, j, 3, 1, 2, 3)
		p := part.Part{K: 2, N: 3}
		if done, err := j.Check(t.Context(), p, false); !done || err != nil {
			t.Fatalf("%s: before: %v, %v", c.name, done, err)
		}
		c.do(j)
		_, err := gather(j)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "1 of 3 parts have to be run again") ||
			!strings.Contains(err.Error(), j.Path(p)) {
			t.Errorf("%s: %v", c.name, err)
		}
		done, err := j.Check(t.Context(), p, false)
		if done || c.forced != (err != nil) || c.forced && (!errors.Is(err, fault.Refused) ||
			!strings.Contains(err.Error(), c.check) || !strings.Contains(err.Error(), "--force")) {
			t.Errorf("%s: to be written again: %v, %v", c.name, done, err)
		}
		if done, err := j.Check(t.Context(), p, true); done || err != nil {
			t.Errorf("%s: to be replaced: %v, %v", c.name, done, err)
		}
		write(t, j, 3, 2)
		if text, err := gather(j); text != "0123456" || err != nil {
			t.Errorf("%s: run again: %q, %v", c.name, text, err)
		}
	}
	j := job(t)
	write(t, j, 2, 1)
	write(t, j, 3, 1)
	if _, err := gather(j); !errors.Is(err, fault.Refused) ||
		!strings.Contains(err.Error(), "out.part-1-of-2, out.part-1-of-3") {
		t.Errorf("two values of N: %v", err)
	}
}

// bytesOf returns the file of a part.
func bytesOf(j *Job, p part.Part, sections ...Section) []byte {
	h := j.head(p)
	text := fmt.Sprintf(`{"kind":%q,"k":%d,"n":%d,"from":%d,"to":%d,"items":%d,"facts":[],"sections":[`, h.Kind, h.K,
		h.N, h.From, h.To, h.Items)
	for i, s := range sections {
		text += strings.Repeat(",", min(i, 1)) + fmt.Sprint(s.Size)
	}
	var b bytes.Buffer
	f := &file{[]byte(text + "]}"), sections}
	f.WriteTo(&b)
	return b.Bytes()
}

func FuzzOpen(f *testing.F) {
	j := &Job{Kind: "bytes", Items: 7}
	f.Add(bytesOf(j, part.Part{K: 2, N: 3}, Bytes([]byte("23"))))
	f.Add(bytesOf(j, part.Part{K: 1, N: 1}))
	f.Add(bytesOf(j, part.Part{K: 12, N: 12}, Bytes(nil), Bytes([]byte("456"))))
	f.Add([]byte(magic))
	huge := bytesOf(j, part.Part{K: 1, N: 1})
	binary.LittleEndian.PutUint32(huge[len(magic):], 1<<32-1)
	f.Add(huge)
	f.Add(bytes.Replace(bytesOf(j, part.Part{K: 1, N: 1}, Bytes([]byte("0"))), []byte("[1]"), []byte("[-1]"), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, first, err := parse("part", data)
		if err != nil {
			if !errors.Is(err, fault.Broken) {
				t.Fatal(err)
			}
			return
		}
		end := int64(first)
		for _, n := range h.Sections {
			if n < 0 {
				t.Fatalf("a section of %d bytes", n)
			}
			end += n
		}
		if end+sha256.Size != int64(len(data)) || h.K < 1 || h.K > h.N || h.From > h.To || h.To > h.Items {
			t.Fatalf("%+v, sections to byte %d of %d", h, end, len(data))
		}
	})
}
