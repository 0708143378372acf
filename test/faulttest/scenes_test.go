package faulttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/convert"
	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/quantize/batch"
	"ggforge/quantize/calibrate"
	"ggforge/test/hftest"
	"ggforge/writer"
	"ggforge/writer/edit"
)

// scene is something that commands do with files.
type scene struct {
	name string
	// prepare makes files in DIR/in, which stay as they are, and in DIR/out, which are there
	// before each run.
	prepare func(t testing.TB, dir string)
	// run makes files in DIR/out; j is nil for scenes without journals. It is called again after it has failed.
	run func(ctx context.Context, dir string, j *writer.Journal) error
	// journals: a run can be resumed.
	journals bool
	// keeps: files of a failed run stay for the next one, with or without a journal.
	keeps bool
	// mixes: files appear one by one, not together.
	mixes bool
	// verifies: files are read back.
	verifies bool
	// midway returns nil if a file under a final name has a record of a change in place that was interrupted, an
	// error if it has none.
	midway func(path string) error
}

// matrix is rows in memory.
type matrix struct {
	ne   []int64
	data []byte
}

func (m *matrix) NE() []int64     { return m.ne }
func (m *matrix) Type() gguf.Type { return gguf.TypeF32 }
func (m *matrix) Cost() int64     { return 0 }
func (m *matrix) Raw(_ *[]byte, a, b int64) ([]byte, error) {
	return m.data[a*m.ne[0]*4 : b*m.ne[0]*4], nil
}

// rowsOf returns rows of float32, different ones for each seed.
func rowsOf(seed int, n, rows int64) *matrix {
	m := &matrix{[]int64{n, rows}, nil}
	for i := range n * rows {
		m.data = binary.LittleEndian.AppendUint32(m.data,
			math.Float32bits(float32((int(i)*7919+seed*104729)%2017)/512-2))
	}
	return m
}

func tensors(typ gguf.Type, seed int) []writer.Tensor {
	return []writer.Tensor{
		{Name: "a.weight", Type: typ, Source: rowsOf(seed, 256, 40)},
		{Name: "b.weight", Type: gguf.TypeF32, Source: rowsOf(seed+1, 96, 3)},
		{Name: "c.weight", Type: typ, Source: rowsOf(seed+2, 256, 8)},
	}
}

// options are those of all writes: one worker, and blocks of some rows.
func options(j *writer.Journal) writer.Options {
	if j != nil {
		own := *j
		j = &own
	}
	return writer.Options{Workers: 1, MaxBuffer: 24 << 10, Force: true, Journal: j}
}

func files(dir, name string, typ gguf.Type, shards int) (list []*writer.File) {
	for i := range shards {
		f := &writer.File{Path: filepath.Join(dir, "out", name+".gguf"),
			Metadata: gguf.Metadata{{Key: "general.name", Value: gguf.String("scene")}}, Tensors: tensors(typ, 10*i)}
		if shards > 1 {
			f.Path = filepath.Join(dir, "out", gguf.ShardName(name, i, shards))
		}
		list = append(list, f)
	}
	return list
}

// old writes files that are to be replaced.
func old(names ...string) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		for _, name := range names {
			put(t, filepath.Join(dir, "out", name), []byte("what was there before, "+name))
		}
	}
}

func put(t testing.TB, path string, data []byte) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// checkpoint makes a checkpoint DIR/in/ARCH.
func checkpoint(arch string) func(testing.TB, string) {
	return func(t testing.TB, dir string) {
		s := hftest.Lookup(arch)
		from, err := s.Write(t.TempDir(), s.All()[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(from, filepath.Join(dir, "in", arch)); err != nil {
			t.Fatal(err)
		}
	}
}

// small opens the checkpoint as a model, as ggeval does.
func small(ctx context.Context, dir string) (*model.Model, error) {
	m, _, err := convert.Open(ctx, filepath.Join(dir, "in", "llama"), convert.Options{})
	return m, err
}

func text(n int) (tokens []int32) {
	for i := range n {
		tokens = append(tokens, int32(3+i*i%50))
	}
	return tokens
}

const inPlace = "model.gguf"

func header(n byte) []byte {
	return gguf.AppendHeader(nil, gguf.Metadata{{Key: "k",
		Value: gguf.String(string(bytes.Repeat([]byte{'G', 'G', n, 0, 7}, 700)))}},
		[]gguf.Tensor{{Name: "t", Type: gguf.TypeI8, NE: []int64{7 * 99}}}, gguf.DefaultAlignment)
}

// inParts writes in parts, and finishes.
func inParts(apart bool) func(context.Context, string, *writer.Journal) error {
	return func(ctx context.Context, dir string, _ *writer.Journal) error {
		const parts = 3
		j := &writer.Journal{Facts: []writer.Fact{{Name: "scene", Value: "parts"}}, Parts: parts}
		if apart {
			j.PartDir = filepath.Join(dir, "parts")
			if err := os.MkdirAll(j.PartDir, 0o777); err != nil {
				return err
			}
		}
		sets := func() [][]*writer.File {
			return [][]*writer.File{files(dir, "a", gguf.TypeQ8_0, 1), files(dir, "b", gguf.TypeF16, 2)}
		}
		for k := range parts {
			j.Part = k + 1
			if _, err := writer.WriteSets(ctx, sets(), options(j)); err != nil {
				return err
			}
		}
		j.Part, j.Finish = 0, true
		_, err := writer.WriteSets(ctx, sets(), options(j))
		return err
	}
}

// calibrated chooses blocks of some tensors, and writes them to a file; unless the name is empty, the collected
// moments go to a file of that name, else the finished blocks to a state.
func calibrated(moments string) func(context.Context, string, *writer.Journal) error {
	return func(ctx context.Context, dir string, _ *writer.Journal) error {
		m, err := small(ctx, dir)
		if err != nil {
			return err
		}
		defer m.Close()
		var targets []calibrate.Target
		for i := range m.Tensors {
			if strings.HasSuffix(m.Tensors[i].Name, "attn_k.weight") {
				targets = append(targets, calibrate.Target{Tensor: i, Type: gguf.TypeQ4_0})
			}
		}
		state := filepath.Join(dir, "out", "blocks.partial.blocks")
		opt := calibrate.Options{Run: eval.Run{Tokens: text(2 * 8), Chunk: 8, Workers: 1},
			Dir: filepath.Join(dir, "out"), Passes: 1}
		if moments == "" {
			opt.State = state
		} else {
			opt.Moments = filepath.Join(dir, "out", moments)
		}
		b, err := calibrate.Run(ctx, m, targets, opt)
		if err != nil {
			return err
		}
		var all []byte
		for _, t := range targets {
			s := b.Source(t)
			raw, err := s.Raw(new([]byte), 0, gguf.Rows(s.NE()))
			if err != nil {
				return errors.Join(err, b.Close())
			}
			all = append(all, raw...)
		}
		if err := b.Close(); err != nil {
			return err
		}
		if err := writer.WriteBytes(ctx, filepath.Join(dir, "out", "blocks"), all, options(nil)); err != nil {
			return err
		}
		if moments != "" {
			return nil
		}
		return os.Remove(state)
	}
}

var scenes = []scene{
	{name: "file", journals: true, run: func(ctx context.Context, dir string, j *writer.Journal) error {
		_, err := writer.Write(ctx, files(dir, "model", gguf.TypeQ8_0, 1)[0], options(j))
		return err
	}},
	{name: "file replaced", journals: true, prepare: old("model.gguf"),
		run: func(ctx context.Context, dir string, j *writer.Journal) error {
			_, err := writer.Write(ctx, files(dir, "model", gguf.TypeQ4_0, 1)[0], options(j))
			return err
		}},
	{name: "not forced", journals: true, run: func(ctx context.Context, dir string, j *writer.Journal) error {
		f, opt := files(dir, "model", gguf.TypeF16, 1)[0], options(j)
		_, err := os.Lstat(f.Path)
		opt.Force = err == nil // it was made, and yet there was an error: the next run is told to replace it
		_, err = writer.Write(ctx, f, opt)
		return err
	}},
	{name: "shards", journals: true, run: func(ctx context.Context, dir string, j *writer.Journal) error {
		_, err := writer.WriteAll(ctx, files(dir, "model", gguf.TypeF16, 3), options(j))
		return err
	}},
	{name: "models replaced", journals: true, prepare: old("a.gguf", "b-00001-of-00002.gguf", "b-00002-of-00002.gguf"),
		run: func(ctx context.Context, dir string, j *writer.Journal) error {
			_, err := writer.WriteSets(ctx, [][]*writer.File{files(dir, "a", gguf.TypeQ8_0, 1),
				files(dir, "b", gguf.TypeF16, 2)}, options(j))
			return err
		}},
	{name: "verified", journals: true, verifies: true, prepare: old("model-00001-of-00002.gguf"),
		run: func(ctx context.Context, dir string, j *writer.Journal) error {
			opt := options(j)
			opt.Verify = true
			if j == nil {
				opt.Journal = &writer.Journal{}
			}
			_, err := writer.WriteAll(ctx, files(dir, "model", gguf.TypeQ8_0, 2), opt)
			return err
		}},
	{name: "parts", keeps: true, prepare: old("a.gguf"), run: inParts(false)},
	{name: "part files", keeps: true, run: inParts(true)},
	{name: "safetensors", journals: true, run: func(ctx context.Context, dir string, j *writer.Journal) error {
		c := &writer.Checkpoint{Dir: filepath.Join(dir, "out", "folder"), MaxShard: 10_000}
		for i, dtype := range []safetensors.DType{safetensors.F16, safetensors.F32, safetensors.F16} {
			c.Tensors = append(c.Tensors, writer.CheckpointTensor{Tensor: tensors(gguf.TypeF16, 3)[i], DType: dtype})
		}
		_, err := writer.WriteCheckpoint(ctx, c, options(j))
		return err
	}},
	{name: "bytes", prepare: old("file"), run: func(ctx context.Context, dir string, _ *writer.Journal) error {
		return writer.WriteBytes(ctx, filepath.Join(dir, "out", "file"),
			bytes.Repeat([]byte("what is there afterwards"), 100), options(nil))
	}},
	{name: "in place", keeps: true, prepare: func(t testing.TB, dir string) {
		put(t, filepath.Join(dir, "out", inPlace), append(header(1), bytes.Repeat([]byte("weights"), 99)...))
	}, run: func(ctx context.Context, dir string, _ *writer.Journal) error {
		path := filepath.Join(dir, "out", inPlace)
		if _, err := writer.Recover(path); err != nil {
			return err
		}
		if data, err := os.ReadFile(path); err != nil || bytes.HasPrefix(data, header(2)) {
			return err
		}
		return writer.Overwrite(ctx, path, header(1), header(2))
	}, midway: func(path string) error {
		if writer.Unrecovered(path) == nil {
			return errors.New("no record of an interrupted change")
		}
		return nil
	}},
	{name: "convert", journals: true, prepare: checkpoint("llama"),
		run: func(ctx context.Context, dir string, j *writer.Journal) error {
			job, err := convert.Prepare(ctx, filepath.Join(dir, "in", "llama"), convert.Options{})
			if err != nil {
				return err
			}
			defer job.Close()
			_, err = job.Write(ctx, filepath.Join(dir, "out", "llama.gguf"), options(j))
			return err
		}},
	{name: "quantize", journals: true, prepare: func(t testing.TB, dir string) {
		old("F16.gguf")(t, dir)
		f := files(dir, "model", gguf.TypeF32, 1)[0]
		f.Path = filepath.Join(dir, "in", "model.gguf")
		if _, err := writer.Write(t.Context(), f, options(nil)); err != nil {
			t.Fatal(err)
		}
	}, run: func(ctx context.Context, dir string, j *writer.Journal) error {
		m, err := model.Open(filepath.Join(dir, "in", "model.gguf"))
		if err != nil {
			return err
		}
		defer m.Close()
		order := &batch.Request{Warn: func(...string) {}, Workers: 1, Write: options(j)}
		for _, name := range []string{"Q8_0", "F16"} {
			r, _ := quantize.LookupRecipe(name)
			order.Recipes = append(order.Recipes, r)
			order.Paths = append(order.Paths, filepath.Join(dir, "out", name+".gguf"))
		}
		run, err := batch.Prepare(ctx, m, order)
		if err != nil {
			return err
		}
		_, err = run.Write(ctx)
		return errors.Join(err, run.Close())
	}},
	{name: "importance", keeps: true, prepare: checkpoint("llama"),
		run: func(ctx context.Context, dir string, _ *writer.Journal) error {
			m, err := small(ctx, dir)
			if err != nil {
				return err
			}
			defer m.Close()
			e, err := eval.New(m)
			if err != nil {
				return err
			}
			state := filepath.Join(dir, "out", "matrix.gguf.partial.state")
			c := eval.Calibration{State: state}
			c.Every = 1
			sums, err := e.Calibrate(ctx, eval.Run{Tokens: text(3 * 8), Chunk: 8, Workers: 1}, imatrix.NewSums(8), c)
			if err != nil {
				return err
			}
			f, err := sums.Layout(imatrix.FormatGGUF)
			if err != nil {
				return err
			}
			if err := writer.WriteFrom(ctx, filepath.Join(dir, "out", "matrix.gguf"), f.Size, f, nil,
				options(nil)); err != nil {
				return err
			}
			return os.Remove(state)
		}},
	{name: "calibrate", keeps: true, prepare: checkpoint("llama"), run: calibrated("")},
	{name: "moments", mixes: true, prepare: checkpoint("llama"), run: calibrated("moments.gguf")},
	{name: "split", journals: true, prepare: func(t testing.TB, dir string) {
		f := files(dir, "model", gguf.TypeF32, 1)[0]
		f.Path = filepath.Join(dir, "in", "model.gguf")
		if _, err := writer.Write(t.Context(), f, options(nil)); err != nil {
			t.Fatal(err)
		}
	}, run: func(ctx context.Context, dir string, j *writer.Journal) error {
		set, err := gguf.OpenSet(filepath.Join(dir, "in", "model.gguf"))
		if err != nil {
			return err
		}
		defer set.Close()
		files, err := edit.Split(set, filepath.Join(dir, "out", "model"), gguf.Cut{MaxTensors: 2}, false)
		if err != nil {
			return err
		}
		_, err = writer.WriteAll(ctx, files, options(j))
		return err
	}},
}
