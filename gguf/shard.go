package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"regexp"
	"strconv"

	"ggforge/fault"
)

// A model may be split into shards: GGUF files of their own, named
//
//	NAME-00001-of-00003.gguf   all metadata, and the first tensors
//	NAME-00002-of-00003.gguf   more tensors, and of metadata only the split keys
//	NAME-00003-of-00003.gguf
//
// Each states split.no (u16, from 0), split.count (u16) and split.tensors.count
// (i32, of all shards together).

// ShardName returns the name of shard no (from 0) of count.
func ShardName(prefix string, no, count int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, no+1, count)
}

var shardName = regexp.MustCompile(`^(.*)-(\d{5,})-of-(\d{5,})\.gguf$`)

// ParseShardName parses a name that ShardName has built; ok is false for
// other names.
func ParseShardName(path string) (prefix string, no, count int, ok bool) {
	m := shardName.FindStringSubmatch(path)
	if m == nil {
		return "", 0, 0, false
	}
	no, err1 := strconv.Atoi(m[2])
	count, err2 := strconv.Atoi(m[3])
	ok = err1 == nil && err2 == nil && 1 <= no && no <= count && ShardName(m[1], no-1, count) == path
	return m[1], no - 1, count, ok
}

// Cut has the limits of a shard. The zero value has none.
type Cut struct {
	MaxTensors int   // in a shard; 0 for any number
	MaxBytes   int64 // of tensor data in a shard that has more than one tensor; 0 for any
}

// Ends returns the end of each shard, as an index in sizes, the bytes of each tensor; the last end is
// len(sizes). A shard ends before the tensor with which it would exceed a limit.
func (c Cut) Ends(sizes []int64) (ends []int) {
	from, bytes := 0, int64(0)
	for i, n := range sizes {
		if i > from && (c.MaxTensors > 0 && i-from >= c.MaxTensors || c.MaxBytes > 0 && bytes+n > c.MaxBytes) {
			ends = append(ends, i)
			from, bytes = i, 0
		}
		bytes += n
	}
	return append(ends, len(sizes))
}

// Set is a model: one file, or all shards of a split one.
type Set struct {
	Files []*File // in the order of the shards; not empty
}

// OpenSet opens the model at path: the file there, and the other shards if it is
// the first of several. The caller closes it. Shards that are missing or do not
// belong together are an ErrBroken; a path to another shard than the first is an
// error of kind fault.Usage.
func OpenSet(path string) (*Set, error) { return OpenSetBy(path, Open) }

// OpenSetBy is OpenSet for files that are opened in another way.
func OpenSetBy(path string, open func(path string) (*File, error)) (*Set, error) {
	first, err := open(path)
	if err != nil {
		return nil, err
	}
	s := &Set{Files: []*File{first}}
	if err := s.openShards(open); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Set returns the file as a model, also if it is one of several shards.
func (f *File) Set() *Set { return &Set{Files: []*File{f}} }

// Close closes all files.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.Files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Unchanged is File.Unchanged for all files.
func (s *Set) Unchanged() error {
	for _, f := range s.Files {
		if err := f.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// Metadata returns the model's metadata, those of the first file.
func (s *Set) Metadata() Metadata { return s.Files[0].Metadata }

// Size returns the size of all files.
func (s *Set) Size() (n int64) {
	for _, f := range s.Files {
		n += f.Size
	}
	return n
}

// Tensors yields the tensors of all files in their order, each with the number of
// its shard, from 0.
func (s *Set) Tensors() iter.Seq2[int, *Tensor] {
	return func(yield func(int, *Tensor) bool) {
		for shard, f := range s.Files {
			for i := range f.Tensors {
				if !yield(shard, &f.Tensors[i]) {
					return
				}
			}
		}
	}
}

// Shapes yields the names of all tensors and their dimensions.
func (s *Set) Shapes() iter.Seq2[string, []int64] {
	return func(yield func(string, []int64) bool) {
		for _, t := range s.Tensors() {
			if !yield(t.Name, t.NE) {
				return
			}
		}
	}
}

// Shard returns the number of f among the shards of a model, from 0, and how many there are: 0
// and 1 for a file that is a model by itself.
func (f *File) Shard() (no, count int, err error) {
	no, count, _, err = splitKeys(f)
	return no, count, err
}

// splitKeys reads the split keys of f; a file without them is shard 0 of 1, with
// tensors -1.
func splitKeys(f *File) (no, count, tensors int, err error) {
	read := func(key string, absent int) int {
		v, ok := f.Metadata.Get(key)
		if !ok || err != nil {
			return absent
		}
		n, ok := v.Int()
		if !ok || n < 0 || n > 1<<31-1 {
			err = fault.Errorf(ErrBroken, "%s: key %q: got %s, want a count", f.Path, key, v.Short())
		}
		return int(n)
	}
	no, count, tensors = read(KeySplitNo, 0), read(KeySplitCount, 1), read(KeySplitTensors, -1)
	if count == 0 { // a file that is not split may have this value
		count = 1
	}
	return no, count, tensors, err
}

func (s *Set) openShards(open func(path string) (*File, error)) error {
	first := s.Files[0]
	no, count, tensors, err := splitKeys(first)
	if err != nil {
		return err
	}
	broken := func(f *File, format string, args ...any) error {
		return fault.Errorf(ErrBroken, "%s: %s", f.Path, fmt.Sprintf(format, args...))
	}
	dir, base := filepath.Split(first.Path)
	prefix, nameNo, nameCount, named := ParseShardName(base)
	prefix = dir + prefix
	switch {
	case no >= count || count > MaxShards:
		return broken(first, "%s is %d and %s is %d: want a number below the count, and at most %d shards", KeySplitNo,
			no, KeySplitCount, count, MaxShards)
	case count == 1:
		return s.checkTensors(tensors)
	case no != 0 && named:
		return fault.Errorf(fault.Usage, "%s: shard %d of %d: name the first one, %s", first.Path, no+1, count,
			ShardName(prefix, 0, count))
	case no != 0:
		return fault.Errorf(fault.Usage, "%s: shard %d of %d: name the first one", first.Path, no+1, count)
	case !named || nameNo != no || nameCount != count:
		return broken(first, "first of %d shards, want a name ending in %s", count, ShardName("", 0, count))
	}
	limits := LimitsOf(first.Architecture())
	for i := 1; i < count; i++ {
		path := ShardName(prefix, i, count)
		f, err := open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return fault.Errorf(ErrBroken, "shard %d of %d is missing: %w", i+1, count, err)
		}
		if err != nil {
			return err
		}
		s.Files = append(s.Files, f)
		n, c, t, err := splitKeys(f)
		switch {
		case err != nil:
			return err
		case n != i || c != count:
			return broken(f, "says it is shard %d of %d, want %d of %d", n+1, c, i+1, count)
		case t != tensors && t != -1:
			return broken(f, "%s is %d, the first shard says %d", KeySplitTensors, t, tensors)
		}
		for i := range f.Tensors {
			if err := limits.Check(f.Tensors[i].Name, f.Tensors[i].NE); err != nil {
				return broken(f, "tensor %q: %v", f.Tensors[i].Name, err)
			}
		}
	}
	return s.checkTensors(tensors)
}

// checkTensors checks that the shards have want tensors together (-1: not
// stated), and no name twice.
func (s *Set) checkTensors(want int) error {
	seen := map[string]bool{}
	for shard, t := range s.Tensors() {
		if seen[t.Name] {
			return fault.Errorf(ErrBroken, "%s: tensor %q is in an earlier shard, too", s.Files[shard].Path, t.Name)
		}
		seen[t.Name] = true
	}
	if want >= 0 && want != len(seen) {
		return fault.Errorf(ErrBroken, "%s: %s is %d, but there are %d tensors", s.Files[0].Path, KeySplitTensors,
			want, len(seen))
	}
	return nil
}
