package config

import (
	"errors"
	"io/fs"
	"reflect"
	"testing"

	"ggforge/fault"
)

// sideFiles are files by name.
type sideFiles map[string]string

func (f sideFiles) ReadFile(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// everySource is all that Gather can read.
var everySource = []*Source{PoolingFiles, DenseFiles}

func gather(t testing.TB, files sideFiles, known Facts, opt Options) (Facts, error) {
	t.Helper()
	c, err := Parse([]byte(`{"architectures": ["X"]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.View(opt).Gather(files, known, everySource)
	if err != nil {
		return Facts{}, err
	}
	return v.Facts, nil
}

func TestGather(t *testing.T) {
	const (
		modules = `[{"type": "sentence_transformers.models.Transformer", "path": ""}, {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
			{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]`
		dense = `{"in_features": 64, "out_features": 32, "activation_function": "torch.nn.modules.linear.Identity"}`
	)
	for name, c := range map[string]struct {
		files sideFiles
		known Facts
		dense bool
		want  Facts
		kind  error // of the error, nil for none
	}{
		"nothing": {},
		"pooling": {files: sideFiles{"modules.json": modules,
			"1_Pooling/config.json": `{"pooling_mode_cls_token": true}`}, want: Facts{Pooling: "cls"}},
		"pooling-by-name": {files: sideFiles{"modules.json": modules,
			"1_Pooling/config.json": `{"pooling_mode": "lasttoken"}`}, want: Facts{Pooling: "lasttoken"}},
		"pooling-of-max": {files: sideFiles{"modules.json": modules,
			"1_Pooling/config.json": `{"pooling_mode": "max"}`}, kind: fault.Unsupported},
		"no-pooling": {files: sideFiles{"modules.json": modules}, kind: fault.Broken},
		"embedding": {files: sideFiles{"embedding_config.json": `{"pooling": "last_token"}`},
			want: Facts{Pooling: "lasttoken"}},
		"embedding-none": {files: sideFiles{"embedding_config.json": `{"pooling": null}`}},
		"embedding-mean": {files: sideFiles{"embedding_config.json": `{"pooling": "mean"}`}, kind: fault.Unsupported},
		"dense": {files: sideFiles{"modules.json": modules,
			"1_Pooling/config.json": `{"pooling_mode_mean_tokens": true}`, "2_Dense/config.json": dense}, dense: true,
			want: Facts{Pooling: "mean", Dense: []DenseModule{{"dense_2", "2_Dense", 64, 32}}}},
		"dense-unasked": {files: sideFiles{"modules.json": `[{"type": "Dense", "path": "2_Dense"}]`}},
		"dense-absent": {files: sideFiles{"modules.json": `[{"type": "Dense", "path": "2_Dense"}]`}, dense: true,
			kind: fault.Broken},
		"dense-outside": {files: sideFiles{"modules.json": `[{"type": "Dense", "path": "../2_Dense"}]`}, dense: true,
			kind: fault.Unsupported},
		"modules": {files: sideFiles{"modules.json": "{"}, kind: fault.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := gather(t, c.files, c.known, Options{Dense: c.dense})
			if c.kind != nil {
				if !errors.Is(err, c.kind) {
					t.Errorf("error %v, want kind %v", err, c.kind)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// FuzzGather reads side files of any contents: an error has a kind.
func FuzzGather(f *testing.F) {
	f.Add(`[{"type": "Pooling", "path": "p"}, {"type": "Dense", "path": "2_Dense"}]`,
		`{"pooling_mode": "mean", "in_features": 1, "out_features": 2}`)
	f.Add("", "{")
	f.Fuzz(func(t *testing.T, modules, config string) {
		files := sideFiles{"modules.json": modules, "p/config.json": config, "2_Dense/config.json": config,
			"embedding_config.json": config}
		if _, err := gather(t, files, Facts{}, Options{Dense: true}); err != nil &&
			!fault.Has(err) {
			t.Errorf("%v has no kind", err)
		}
	})
}
