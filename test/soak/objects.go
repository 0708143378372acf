package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ggforge/checkpoint"
	"ggforge/test/buckettest"
	"ggforge/test/hftest"
	"ggforge/test/hubtest"
)

// objectStore is a store of objects that a job makes in its bucket out.
type objectStore struct {
	again bool // a killed process sends an object again from its beginning
	*buckettest.Server
	*failing
}

// reset replaces the store by an empty one. It takes some milliseconds for each request.
func (o *objectStore) reset() {
	o.end()
	o.failing = &failing{}
	o.Server = buckettest.Serve(o.failing, "", "")
	o.Aged = true // no process waits for the lease of one that was killed
	o.SetAnswer(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		hubtest.Slow(r, 5*time.Millisecond)
		return false
	})
}

func (o *objectStore) env() []string { return o.variables }

func (o *objectStore) begun() (yes, there bool) {
	return o.Parts() > 0 || slices.ContainsFunc(o.Names(), ours.MatchString), true
}

// judge wants whole objects; those that are there appear one after the other. Parts that stay are among them.
func (o *objectStore) judge(want map[string][]byte) (phase string, err error) {
	o.Idle() // what a killed process has sent, arrives
	made, partial := 0, false
	results := len(want)
	for name := range want {
		if ours.MatchString(name) {
			results--
		}
	}
	for _, name := range o.Names() {
		short := strings.TrimPrefix(name, "out/")
		data, ok := want[short]
		switch {
		case strings.Contains(short, ".partial/"):
			partial = true
		case !ok:
			return "", fmt.Errorf("an unexpected object %s", name)
		case !bytes.Equal(o.Get(name), data):
			return "", fmt.Errorf("object %s is not the file that one process makes", name)
		case ours.MatchString(short):
			partial = true
		default:
			made++
		}
	}
	switch {
	case made == results:
		return "after", nil
	case made > 0:
		return "commit", nil
	case partial:
		return "during", nil
	}
	return "before", nil
}

// finished wants the objects and nothing else: no small ones of a run, no uploads, and no piece sent again that the
// store had, unless that is what a killed process does.
func (o *objectStore) finished(want map[string][]byte, kills int, _ bool) error {
	if _, err := o.judge(want); err != nil {
		return err
	}
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		names = append(names, "out/"+name)
		most := int64(len(want[name]))
		if o.again {
			most *= 1 + int64(kills)
		}
		if n := o.Sent("out/" + name); n > most {
			return fmt.Errorf("%d bytes of %s were stored, which has %d, after %d kills", n, name, len(want[name]), kills)
		}
	}
	if have := o.Names(); !slices.Equal(have, names) || o.Uploads() > 0 {
		return fmt.Errorf("%d uploads are left, objects %v, want %v", o.Uploads(), have, names)
	}
	return nil
}

// pipeline makes the folder IN/tiny of a pipeline with a text encoder, whose tokenizer is in a folder next to it.
func (s *soak) pipeline() error {
	spec := hftest.Lookup("t5-encoder")
	whole, err := spec.Write(filepath.Join(s.in, "encoders"), hftest.Variant{Seed: 1, DType: "F32", Set: `{"d_model": 256, "d_ff": 640,
		"num_layers": 6, "num_heads": 4, "d_kv": 64}`})
	if err != nil {
		return err
	}
	for _, folder := range []string{"text_encoder_2", "tokenizer_2"} {
		if err := os.MkdirAll(filepath.Join(s.in, "tiny", folder), 0o777); err != nil {
			return err
		}
	}
	index := filepath.Join(s.in, "tiny", checkpoint.PipelineFile)
	if err := os.WriteFile(index, []byte(`{"_class_name": "FluxPipeline"}`), 0o666); err != nil {
		return err
	}
	files, err := os.ReadDir(whole)
	if err != nil {
		return err
	}
	for _, f := range files {
		folder := "tokenizer_2"
		if f.Name() == "config.json" || strings.Contains(f.Name(), "safetensors") {
			folder = "text_encoder_2"
		}
		if err := os.Rename(filepath.Join(whole, f.Name()), filepath.Join(s.in, "tiny", folder, f.Name())); err != nil {
			return err
		}
	}
	return nil
}
