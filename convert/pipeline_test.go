package convert_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/test/buckettest"
	"ggforge/test/hftest"
	"ggforge/test/hubtest"
)

// pipelineOf returns the folder of a pipeline with a T5 encoder in text_encoder_2, its tokenizer in tokenizer_2 and
// another one in tokenizer, and the encoder as a model of its own.
func pipelineOf(t *testing.T) (pipeline, whole string) {
	t.Helper()
	spec := hftest.Lookup("t5-encoder")
	whole, err := spec.Write(t.TempDir(), spec.All()[0])
	must(t, err)
	pipeline = filepath.Join(t.TempDir(), "Tiny-dev")
	for _, folder := range []string{"text_encoder_2", "tokenizer_2", "tokenizer"} {
		must(t, os.MkdirAll(filepath.Join(pipeline, folder), 0o777))
	}
	must(t, os.WriteFile(filepath.Join(pipeline, checkpoint.PipelineFile), []byte(`{"_class_name": "FluxPipeline"}`),
		0o666))
	must(t, os.WriteFile(filepath.Join(pipeline, "tokenizer", "spiece.model"), []byte("another"), 0o666))
	files, err := os.ReadDir(whole)
	must(t, err)
	for _, f := range files {
		folder := "tokenizer_2"
		if f.Name() == "config.json" || strings.Contains(f.Name(), "safetensors") {
			folder = "text_encoder_2"
		}
		data, err := os.ReadFile(filepath.Join(whole, f.Name()))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(pipeline, folder, f.Name()), data, 0o666))
	}
	return pipeline, whole
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTextEncoder converts a text encoder of a pipeline, whose tokenizer is in a folder next to it, on the disk, in the
// hub's cache and on servers: the file is the one that a folder with both gives.
func TestTextEncoder(t *testing.T) {
	pipeline, whole := pipelineOf(t)
	want, err := convertTo(t, t.Context(), whole, convert.Options{})
	must(t, err)
	hub := hubtest.Serve(t, "org/Tiny-dev", pipeline)
	remote := convert.Options{Remote: checkpoint.Remote{Endpoint: hub.URL}}
	objects := buckettest.Serve(t, pipeline, "bucket/models/Tiny-dev/")
	s3 := convert.Options{Remote: checkpoint.Remote{S3Endpoint: objects.URL, S3Region: "us-east-1"}}
	web := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(pipeline))))
	defer web.Close()
	cache := filepath.Join(t.TempDir(), "models--org--Tiny-dev", "snapshots", hubtest.Commit)
	must(t, os.CopyFS(cache, os.DirFS(pipeline)))
	blob := filepath.Join(filepath.Dir(filepath.Dir(cache)), "blobs", "0")
	must(t, os.MkdirAll(filepath.Dir(blob), 0o777))
	must(t, os.Rename(filepath.Join(cache, "tokenizer_2", "spiece.model"), blob))
	must(t, os.Symlink("../../../blobs/0", filepath.Join(cache, "tokenizer_2", "spiece.model")))
	for _, c := range []struct {
		name, model string
		opt         convert.Options
		called      string // the model's name
	}{
		{"folder", filepath.Join(pipeline, "text_encoder_2"), convert.Options{}, "Tiny-Dev-Text_Encoder_2"},
		{"cache", filepath.Join(cache, "text_encoder_2"), convert.Options{}, "Tiny-Dev-Text_Encoder_2"},
		{"hub", "hf://org/Tiny-dev/text_encoder_2", remote, "org-Tiny-dev-text_encoder_2"},
		{"revision", "hf://org/Tiny-dev@main/text_encoder_2", remote, "org-Tiny-dev-text_encoder_2"},
		{"page", hub.URL + "/org/Tiny-dev/tree/main/text_encoder_2", remote, "org-Tiny-dev-text_encoder_2"},
		{"s3", "s3://bucket/models/Tiny-dev/text_encoder_2", s3, "Tiny-dev-text_encoder_2"},
		{"web", web.URL + "/Tiny-dev/text_encoder_2", convert.Options{}, "Tiny-dev-text_encoder_2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := convertTo(t, t.Context(), c.model, c.opt)
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Error("another file than that of a folder with both")
			}
			job, err := convert.Prepare(t.Context(), c.model, c.opt)
			must(t, err)
			defer job.Close()
			name, err := job.Output("")
			must(t, err)
			if !strings.HasPrefix(filepath.Base(name), c.called) {
				t.Errorf("output %q, want %s-…", name, c.called)
			}
			var read []string
			for _, in := range job.Inputs() {
				read = append(read, in.Name)
			}
			if s := strings.Join(read, " "); !strings.Contains(s, "spiece.model") || strings.Contains(s, "..") {
				t.Errorf("inputs %q", read)
			}
		})
	}
}

// TestTextEncoderBeside has what is not read from next to a text encoder.
func TestTextEncoderBeside(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(pipeline string) error
		kind   error
		want   string
	}{
		{"no tokenizer", func(p string) error { return os.RemoveAll(filepath.Join(p, "tokenizer_2")) }, fault.Broken,
			"in the folder tokenizer_2 next to it"},
		{"no pipeline", func(p string) error { return os.Remove(filepath.Join(p, checkpoint.PipelineFile)) },
			fs.ErrNotExist, "not next to model_index.json"},
		{"a link for the folder", func(p string) error {
			return errors.Join(os.Rename(filepath.Join(p, "tokenizer_2"), filepath.Join(p, "..", "elsewhere")),
				os.Symlink(filepath.Join(p, "..", "elsewhere"), filepath.Join(p, "tokenizer_2")))
		}, fs.ErrNotExist, "in the folder tokenizer_2"},
		{"a link for a file", func(p string) error {
			name := filepath.Join(p, "tokenizer_2", "spiece.model")
			return errors.Join(os.Rename(name, filepath.Join(p, "spiece.model")), os.Symlink("../spiece.model", name))
		}, fault.Refused, "spiece.model: is a link to "},
		{"a pipe", func(p string) error {
			name := filepath.Join(p, "tokenizer_2", "spiece.model")
			return errors.Join(os.Remove(name), os.Symlink("/dev/null", name))
		}, fault.Refused, "outside the model directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pipeline, _ := pipelineOf(t)
			must(t, c.change(pipeline))
			_, err := convertTo(t, t.Context(), filepath.Join(pipeline, "text_encoder_2"), convert.Options{})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	t.Run("its own", func(t *testing.T) {
		pipeline, whole := pipelineOf(t)
		encoder := filepath.Join(pipeline, "text_encoder_2")
		data, err := os.ReadFile(filepath.Join(whole, "spiece.model"))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(encoder, "spiece.model"), data, 0o666))
		must(t, os.WriteFile(filepath.Join(pipeline, "tokenizer_2", "spiece.model"), []byte("broken"), 0o666))
		job, err := convert.Prepare(t.Context(), encoder, convert.Options{Type: convert.F16})
		must(t, err)
		defer job.Close()
		for _, path := range job.Files() {
			if strings.Contains(path, "tokenizer_2") {
				t.Errorf("%s was read, though the encoder has its own tokenizer", path)
			}
		}
	})
	t.Run("missing folder", func(t *testing.T) {
		pipeline, _ := pipelineOf(t)
		hub := hubtest.Serve(t, "org/Tiny-dev", pipeline)
		_, err := convertTo(t, t.Context(), "hf://org/Tiny-dev/text_encoder_3",
			convert.Options{Remote: checkpoint.Remote{Endpoint: hub.URL}})
		if !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), "org/Tiny-dev: has no folder text_encoder_3") {
			t.Error(err)
		}
	})
}
