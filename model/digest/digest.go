// Package digest hashes the tensors of GGUF files: each alone, and all of them one after the
// other. Metadata do not count, so that editing them changes no hash.
//
// The hashes are those of llama.cpp's gguf-hash, which leaves out three kinds of tensors that
// early converters wrote (Counts).
//
// These sums are of all bytes, for publishing and comparing. To check whether an input is still the same, without
// reading all of it, use model/identity.
package digest

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/parallel"
)

// Kind is a kind of hash.
type Kind string

// The kinds, in the order in which they are listed.
const (
	XXH64  Kind = "xxh64"
	SHA1   Kind = "sha1"
	SHA256 Kind = "sha256"
	UUID   Kind = "uuid" // version 5, of all tensors only
)

// Kinds are all kinds.
var Kinds = []Kind{XXH64, SHA1, SHA256, UUID}

// namespace is the namespace of models' UUIDs: the version 5 UUID of the URL en.wikipedia.org/wiki/Llama.cpp.
var namespace = []byte{0xef, 0x00, 0x12, 0x06, 0xda, 0xdc, 0x5f, 0x6d, 0xa1, 0x5f, 0x33, 0x59, 0xe5, 0x77, 0xd4, 0xe5}

// Sum is one hash.
type Sum struct {
	Kind   Kind   `json:"kind"`
	Hash   string `json:"hash"` // hexadecimal, or a UUID
	Tensor string `json:"tensor,omitempty"`
}

// Counts reports whether the tensor of that name is hashed.
func Counts(name string) bool {
	return !strings.HasSuffix(name, ".attention.masked_bias") && !strings.HasSuffix(name, ".attention.bias") &&
		!strings.HasSuffix(name, ".rotary_emb.inv_freq")
}

func (k Kind) hash() hash.Hash {
	switch k {
	case XXH64:
		return xxhash.New()
	case SHA256:
		return sha256.New()
	}
	h := sha1.New()
	if k == UUID {
		h.Write(namespace)
	}
	return h
}

func (k Kind) text(h hash.Hash) string {
	b := h.Sum(nil)
	if k != UUID {
		return hex.EncodeToString(b)
	}
	b[6], b[8] = b[6]&0x0f|5<<4, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// buffer is the number of bytes that are read at once.
const buffer = 1 << 20

// Of returns the hashes of each tensor of a model, in order and kind by kind, and then the
// hashes of all tensors together; without layers only the latter. The bytes are hashed in the
// byte order of the file, all kinds at the same time.
func Of(ctx context.Context, s *gguf.Set, kinds []Kind, layers bool) ([]Sum, error) {
	for _, k := range kinds {
		if !slices.Contains(Kinds, k) {
			return nil, fault.Errorf(fault.Usage, "hash %q: want one of %v", k, Kinds)
		}
	}
	type column struct {
		tensors []string
		whole   string
	}
	columns := make([]column, len(kinds))
	var names []string
	for _, t := range s.Tensors() {
		if Counts(t.Name) {
			names = append(names, t.Name)
		}
	}
	err := parallel.For(ctx, len(kinds), len(kinds), func(i, _ int) error {
		c, whole, buf := &columns[i], kinds[i].hash(), make([]byte, buffer)
		for shard, t := range s.Tensors() {
			if !Counts(t.Name) {
				continue
			}
			var one hash.Hash
			to := io.Writer(whole)
			if layers && kinds[i] != UUID {
				one = kinds[i].hash()
				to = io.MultiWriter(whole, one)
			}
			if err := feed(ctx, to, s.Files[shard], t, buf); err != nil {
				return err
			}
			if one != nil {
				c.tensors = append(c.tensors, kinds[i].text(one))
			}
		}
		c.whole = kinds[i].text(whole)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var sums []Sum
	for j, name := range names {
		for i, k := range kinds {
			if len(columns[i].tensors) > 0 {
				sums = append(sums, Sum{k, columns[i].tensors[j], name})
			}
		}
	}
	for i, k := range kinds {
		sums = append(sums, Sum{Kind: k, Hash: columns[i].whole})
	}
	return sums, nil
}

// feed writes the bytes of a tensor to a hash.
func feed(ctx context.Context, w io.Writer, f *gguf.File, t *gguf.Tensor, buf []byte) error {
	r, n := f.Reader(t), t.Bytes()
	for at := int64(0); at < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), n-at)]
		if got, err := r.ReadAt(part, at); got < len(part) {
			return fmt.Errorf("%s: tensor %q: %w", f.Path, t.Name, err)
		}
		w.Write(part) // a hash never fails
		at += int64(len(part))
	}
	return nil
}
