package table

import (
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/fault"
	"ggforge/gguf"
)

// KVs returns the metadata below the architecture's name, including general.file_type, in the order of the reference;
// early are the pairs before general.type.
func (a *Arch) KVs(c *config.View, fileType uint32) (early, m gguf.Metadata, err error) {
	for _, e := range a.Expect {
		if err := e.check(a, c); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range []struct {
		key   string
		known bool
	}{
		{"full_attention", a.RopePerAttention}, {"sliding_attention", a.RopePerAttention},
		{"mrope_section", a.RopeSections},
	} {
		if c.RopeRoot().Members()[r.key] != nil && !r.known {
			return nil, nil, fault.Errorf(fault.Unsupported, "%s: rope setting %q has no meaning in architecture %s",
				c.FileName(), r.key, a.Name)
		}
	}
	if early, err = a.kvs(c, a.HeaderFirst, fileType); err != nil {
		return nil, nil, err
	}
	m, err = a.kvs(c, a.Metadata, fileType)
	return early, m, err
}

// Constants returns the constant pairs of HeaderFirst, which the reference also writes into adapters; the other pairs
// belong to tensors that adapters lack.
func (a *Arch) Constants(c *config.View) (gguf.Metadata, error) {
	rows := slices.DeleteFunc(slices.Clone(a.HeaderFirst), func(r Row) bool { return r.Derive != nil || r.From != nil })
	return a.kvs(c, rows, 0)
}

func (a *Arch) kvs(c *config.View, rows []Row, fileType uint32) (m gguf.Metadata, err error) {
	for _, r := range rows {
		if r.Key == gguf.KeyFileType {
			if r.Derive != nil {
				_, ok, err := r.Derive(c)
				if err != nil {
					return nil, err
				}
				if !ok {
					continue
				}
			}
			m.Set(r.Key, gguf.Uint32(fileType))
			continue
		}
		if r.Deviates && c.Options.Reference {
			continue
		}
		if r.Many != nil {
			pairs, err := r.Many(c)
			if err != nil {
				return nil, err
			}
			for _, kv := range pairs {
				m.Set(gguf.ArchKey(a.Name, kv.Key), kv.Value)
			}
			continue
		}
		v, ok, err := r.Value(c)
		if r.Key == KeyBlockCount && a.NextN != nil && err == nil {
			n, e := a.NextN.blocks(c)
			v, ok, err = Uint32Of(n, true, e)
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		key := r.Key
		if !r.Whole && !strings.HasPrefix(key, "general.") && !strings.HasPrefix(key, "tokenizer.") &&
			!strings.HasPrefix(key, "diffusion.") {
			key = gguf.ArchKey(a.Name, key)
		}
		m.Set(key, v)
	}
	return m, nil
}

// HeaderLastKVs returns the metadata after the tokenizer's.
func (a *Arch) HeaderLastKVs(c *config.View) (gguf.Metadata, error) {
	return a.kvs(c, a.headerLast(), 0)
}
