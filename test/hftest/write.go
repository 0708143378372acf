package hftest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch/torchfiletest"
)

// Write makes the checkpoint of a variant in the directory dir/Name and returns that directory.
func (s *Spec) Write(dir string, v Variant) (string, error) {
	dir = filepath.Join(dir, s.Name)
	cfg, err := s.config(v)
	if err != nil {
		return dir, err
	}
	table, err := s.tensors(cfg)
	if err != nil {
		return dir, err
	}
	files := map[string][]byte{}
	if s.Base == nil {
		files["config.json"] = configJSON(cfg)
		if err := tokenizerOf(s).write(files); err != nil {
			return dir, fmt.Errorf("hftest: %s: %w", s.Name, err)
		}
	}
	for name, text := range s.Files {
		if files[name] = []byte(text); text == "" {
			delete(files, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, s.folder(name), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return dir, err
		}
		if err := os.WriteFile(path, files[name], 0o666); err != nil {
			return dir, err
		}
	}
	if s.Base != nil {
		base := s.BaseDir(dir)
		if _, err := s.Base.Write(filepath.Dir(base), v); err != nil {
			return dir, err
		}
		refs := filepath.Join(filepath.Dir(filepath.Dir(base)), "refs")
		if err := os.MkdirAll(refs, 0o777); err != nil {
			return dir, err
		}
		if err := os.WriteFile(filepath.Join(refs, "main"), []byte(s.Base.Name), 0o666); err != nil {
			return dir, err
		}
	}
	if s.Target != "" {
		if _, err := Lookup(s.Target).Write(dir, Lookup(s.Target).All()[0]); err != nil {
			return dir, err
		}
	}
	for _, file := range slices.Sorted(maps.Keys(s.ExtraFiles)) {
		table, err := s.table(s.ExtraFiles[file], cfg)
		if err != nil {
			return dir, err
		}
		list, byName, err := s.describe(table, v)
		if err != nil {
			return dir, err
		}
		write := writeShard
		if filepath.Ext(file) == ".pt" {
			write = s.writePickle
		}
		if err := write(filepath.Join(dir, file), list, byName, &filler{seed: v.Seed, edge: v.Edge && s.Base == nil,
			ring: v.Ring, blank: v.Blank}); err != nil {
			return dir, fmt.Errorf("hftest: %s: %w", s.Name, err)
		}
	}
	if s.Base != nil {
		return dir, nil
	}
	return dir, s.writeTensors(dir, table, v)
}

// BaseID is the ID of the base models of adapters.
const BaseID = "acme/base"

// Hub returns the folder in an adapter's directory that has the layout of the hub's cache and holds the base model.
func (s *Spec) Hub(dir string) string { return filepath.Join(dir, "hub") }

// BaseDir returns the directory of the base model of an adapter in dir, "" for a spec of a
// model.
func (s *Spec) BaseDir(dir string) string {
	if s.Base == nil {
		return ""
	}
	return filepath.Join(s.Hub(dir), "models--"+strings.ReplaceAll(BaseID, "/", "--"), "snapshots", s.Base.Name)
}

// describe returns the safetensors entries of a table's tensors, and the table's rows by name.
func (s *Spec) describe(table []tensor, v Variant) ([]safetensors.Tensor, map[string]tensor, error) {
	byName := make(map[string]tensor, len(table))
	list := make([]safetensors.Tensor, len(table))
	for i, t := range table {
		dtype, ok := dtypes[cmp.Or(t.dtype, v.DType)]
		if !ok {
			return nil, nil, fmt.Errorf("hftest: %s: unknown element type %q", s.Name, cmp.Or(t.dtype, v.DType))
		}
		byName[t.name] = t
		list[i] = safetensors.Tensor{Name: t.name, DType: dtype, Shape: t.shape}
	}
	return list, byName, nil
}

// Arguments returns the variant's flags for a checkpoint in dir, with $target replaced.
func (s *Spec) Arguments(dir string, v Variant) []string {
	list := slices.Clone(v.Flags)
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "$target", dir+"/"+s.Target)
	}
	return list
}

// folder returns the subfolder of a file.
func (s *Spec) folder(name string) string {
	for pattern, folder := range s.Folders {
		if ok, err := filepath.Match(pattern, name); err != nil {
			panic(err)
		} else if ok {
			return folder
		}
	}
	return ""
}

// ConfigPath returns the path of config.json of the checkpoint in dir; for an adapter, that of its base model.
func (s *Spec) ConfigPath(dir string) string {
	if s.Base != nil {
		return s.Base.ConfigPath(s.BaseDir(dir))
	}
	return filepath.Join(dir, s.folder(config.ConfigFile), config.ConfigFile)
}

// Bytes returns the size of the weights of a variant.
func (s *Spec) Bytes(v Variant) (int64, error) {
	cfg, err := s.config(v)
	if err != nil {
		return 0, err
	}
	table, err := s.tensors(cfg)
	total := int64(0)
	for _, t := range table {
		x := safetensors.Tensor{DType: dtypes[cmp.Or(t.dtype, v.DType)], Shape: t.shape}
		total += x.Elements() * int64(x.DType.Bits()) / 8
	}
	return total, err
}

// writeTensors writes the weights. The tensors of a shard are neighbours in the table, so that experts of one layer and
// matrices that the converter joins lie in different shards.
func (s *Spec) writeTensors(dir string, table []tensor, v Variant) error {
	list, byName, err := s.describe(table, v)
	if err != nil {
		return err
	}
	shards := [][]safetensors.Tensor{list}
	if v.Shards > 1 {
		shards = shards[:0]
		for i := range v.Shards {
			shards = append(shards, list[i*len(list)/v.Shards:(i+1)*len(list)/v.Shards])
		}
		index, err := safetensors.Index(shards)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, s.folder(safetensors.IndexName), safetensors.IndexName), index,
			0o666); err != nil {
			return err
		}
	}
	values := &filler{seed: v.Seed, edge: v.Edge, ring: v.Ring, blank: v.Blank}
	for i, shard := range shards {
		name := safetensors.ShardName(i, len(shards))
		if err := writeShard(filepath.Join(dir, s.folder(name), name), shard, byName, values); err != nil {
			return fmt.Errorf("hftest: %s: %w", s.Name, err)
		}
	}
	return nil
}

func writeShard(path string, shard []safetensors.Tensor, table map[string]tensor, values *filler) (err error) {
	header, _, err := safetensors.Layout(shard, map[string]string{"format": "pt"})
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<16)
	w.Write(header) // errors stay until Flush
	ordered := slices.SortedFunc(slices.Values(shard),
		func(a, b safetensors.Tensor) int { return cmp.Compare(a.Offset(), b.Offset()) })
	for _, t := range ordered {
		values.t, values.dtype = table[t.Name], t.DType
		if err := values.each(func(b []byte) error { _, err := w.Write(b); return err }); err != nil {
			return err
		}
	}
	return w.Flush()
}

// writePickle writes a file of torch.save, with the values in s.Pickled.
func (s *Spec) writePickle(path string, list []safetensors.Tensor, table map[string]tensor, values *filler) error {
	var root map[string]any
	d := json.NewDecoder(strings.NewReader(s.Pickled))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		return err
	}
	root = asPickled(root).(map[string]any)
	for _, t := range list {
		values.t, values.dtype = table[t.Name], t.DType
		var data []byte
		if err := values.each(func(b []byte) error { data = append(data, b...); return nil }); err != nil {
			return err
		}
		at := root
		keys := strings.Split(t.Name, "/")
		for _, key := range keys[:len(keys)-1] {
			if at[key] == nil {
				at[key] = map[string]any{}
			}
			at = at[key].(map[string]any)
		}
		at[keys[len(keys)-1]] = torchfiletest.Tensor{DType: t.DType, Shape: t.Shape, Data: data}
	}
	return os.WriteFile(path, torchfiletest.EncodeNested(root), 0o666)
}

// asPickled turns numbers of JSON into integers, or floats if they have a point.
func asPickled(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			panic(err) // the spec is wrong
		}
		return f
	case []any:
		for i := range v {
			v[i] = asPickled(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = asPickled(v[key])
		}
	}
	return v
}

// dtypes are the element types by name.
var dtypes = func() map[string]safetensors.DType {
	m := map[string]safetensors.DType{}
	for d := safetensors.DType(1); !strings.HasPrefix(d.String(), "DType("); d++ {
		m[d.String()] = d
	}
	return m
}()
