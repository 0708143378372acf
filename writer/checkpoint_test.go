package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/fault"
	"ggforge/gguf"
)

// testCheckpoint has three shards of up to 1 MB; tensors that are larger than a
// block of rows, and of several types.
func testCheckpoint(dir string) *Checkpoint {
	x := make([]float32, 3*(128<<10))
	for i := range x {
		x[i] = float32(i%4001) / 16
	}
	n := int64(len(x)) / 256
	return &Checkpoint{Dir: dir, MaxShard: 1 << 20, Tensors: []CheckpointTensor{
		{Tensor{"a", gguf.TypeF16, newMatrix(x, 256, n), nil, nil}, safetensors.F16},
		{Tensor{"b", gguf.TypeF32, newMatrix(x[:64], 64), nil, nil}, safetensors.F32},
		{Tensor{"c", gguf.TypeBF16, newMatrix(x[:3*5*7], 3, 5, 7), nil, nil}, safetensors.BF16},
		{Tensor{"d", gguf.TypeF32, newMatrix(x, 512, n/2), nil, nil}, safetensors.F32}, // a shard of its own
		{Tensor{"e", gguf.TypeF32, newMatrix(x[:1], 1), nil, nil}, safetensors.F32},
	}}
}

// input is some other file, which the writer must not write over.
func input(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.gguf")
	if err := os.WriteFile(path, []byte("input"), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckpoint(t *testing.T) {
	in := input(t)
	first := map[string][]byte{}
	for _, workers := range []int{1, 2, 8} {
		dir := filepath.Join(t.TempDir(), "out")
		var last Progress
		res, err := WriteCheckpoint(context.Background(), testCheckpoint(dir),
			Options{Inputs: []string{in}, Workers: workers, Progress: func(p Progress) { last = p }})
		if err != nil {
			t.Fatal(err)
		}
		names := entries(t, dir)
		if want := "model-00001-of-00003.safetensors model-00002-of-00003.safetensors model-00003-of-00003.safetensors " + safetensors.IndexName; strings.Join(names, " ") != want {
			t.Fatalf("directory holds %v", names)
		}
		var bytesOf int64
		for i, name := range names {
			b := read(t, filepath.Join(dir, name))
			bytesOf += int64(len(b))
			if first[name] == nil {
				first[name] = b
			}
			if !bytes.Equal(b, first[name]) {
				t.Errorf("%d workers give another %s", workers, name)
			}
			if res.Files[i] != filepath.Join(dir, name) {
				t.Errorf("file %d is %s", i, res.Files[i])
			}
		}
		if res.Bytes != bytesOf || last.Done != res.DataBytes || last.Total != res.DataBytes {
			t.Errorf("%+v, last %+v; want %d bytes", res, last, bytesOf)
		}
		c, err := safetensorstest.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range c.Tensors() {
			got = append(got, fmt.Sprint(x.Name, " ", x.DType, x.Shape))
		}
		if want := []string{"a F16 [1536 256]", "b F32 [64]", "c BF16 [7 5 3]", "d F32 [768 512]",
			"e F32 [1]"}; !slices.Equal(got, want) {
			t.Errorf("tensors %q, want %q", got, want)
		}
		d, _ := c.Lookup("d")
		if want, _ := testCheckpoint("").Tensors[3].Source.Raw(nil, 0, 768); !bytes.Equal(d.Data(), want) {
			t.Error("a tensor that keeps its type differs from its source")
		}
		c.Close()
	}
}

// TestCheckpointDirectory goes through the states the directory may be in.
func TestCheckpointDirectory(t *testing.T) {
	in := input(t)
	const one, index = "model.safetensors", safetensors.IndexName
	for _, c := range []struct {
		name  string
		holds []string
		force bool
		text  string // of the error, of kind fault.Usage; "" for none
	}{
		{"empty", nil, false, ""},
		{"other-file", []string{"config.json"}, false, "is not empty, it holds config.json"},
		{"other-file-forced", []string{"config.json", "tokenizer.model"}, true, ""},
		{"weights", []string{one}, false, "is not empty"},
		{"foreign-weights-forced", []string{one, "model-00001-of-00003.safetensors"}, true,
			"would mix with the new ones: " + one},
		{"same-weights-forced", []string{"model-00001-of-00003.safetensors", index}, true, ""},
		{"other-count-forced", []string{"model-00004-of-00004.safetensors"}, true, "model-00004-of-00004"},
		{"left-by-an-interrupted-run", []string{"model-00001-of-00003.safetensors" + Suffix, index + Suffix}, false,
			""},
		{"left-by-another-run", []string{one + Suffix}, false, "is not empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range c.holds {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			_, err := WriteCheckpoint(context.Background(), testCheckpoint(dir),
				Options{Inputs: []string{in}, Force: c.force})
			if c.text != "" {
				if !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want an error of usage with %q", err, c.text)
				}
				slices.Sort(c.holds)
				if got := entries(t, dir); !slices.Equal(got, c.holds) {
					t.Errorf("directory holds %v", got)
				}
				for _, name := range c.holds {
					if string(read(t, filepath.Join(dir, name))) != "old" {
						t.Errorf("%s touched", name)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkpoint, err := safetensorstest.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			checkpoint.Close()
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteCheckpoint(context.Background(), testCheckpoint(file),
		Options{Inputs: []string{in}, Force: true}); !errors.Is(err, fault.Usage) {
		t.Errorf("a file as directory: got %v", err)
	}
	dir := t.TempDir()
	if err := os.Link(in, filepath.Join(dir, "model-00002-of-00003.safetensors")); err == nil {
		if _, err := WriteCheckpoint(context.Background(), testCheckpoint(dir),
			Options{Inputs: []string{in}, Force: true}); !errors.Is(err, fault.Usage) ||
			!strings.Contains(err.Error(), "output equals input") {
			t.Errorf("output is input: got %v", err)
		}
	}
}

// TestCheckpointErrorsLeaveNothing breaks the last shard.
func TestCheckpointErrorsLeaveNothing(t *testing.T) {
	in := input(t)
	broken := errors.New("source breaks")
	for _, made := range []bool{true, false} {
		dir := t.TempDir()
		if made {
			dir = filepath.Join(dir, "new")
		}
		c := testCheckpoint(dir)
		c.Tensors[4].Source = &matrix{ne: []int64{1}, data: make([]byte, 4), err: broken}
		if _, err := WriteCheckpoint(context.Background(), c, Options{Inputs: []string{in}}); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		list, err := os.ReadDir(dir)
		if made != os.IsNotExist(err) || len(list) > 0 {
			t.Errorf("made %v: leftover files: %v %v", made, list, err)
		}
	}
	c := testCheckpoint(t.TempDir())
	c.Tensors[0].Type = gguf.TypeQ8_0
	if _, err := WriteCheckpoint(context.Background(), c, Options{Inputs: []string{in}}); !errors.Is(err,
		fault.Usage) {
		t.Errorf("a type and a DType of different sizes: %v", err)
	}
}
