package eval

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/io/mmap"
	"ggforge/internal/io/statefile"
	"ggforge/model/identity"
	"ggforge/writer"
)

// Calibration configures a collection of importance that can be interrupted: the next one with the same State resumes
// it.
type Calibration struct {
	Importance // Done and Save are set
	// State is the path of a state file for the sums so far, "" for none. It is written after every Every chunks; with
	// Every 0 it is only read. An existing file is resumed from if its text, chunk size, model, merged files, Output,
	// Group and Run.NextN are the same; otherwise the error is of kind fault.Refused. Other programs can read it as an imatrix of
	// the chunks so far; its SHA-256 is appended. The caller removes it after the run.
	State string
	// Text is the SHA-256 of the tokenized text.
	Text [sha256.Size]byte
	// Resumed, if set, is called with the number of chunks that State already covers.
	Resumed func(done int)
}

// Keys of a state file, see imatrix.Sums.State.
const (
	keyDone   = "imatrix.state.done"
	keyText   = "imatrix.state.text"
	keyModel  = "imatrix.state.model"
	keyMerged = "imatrix.state.merged"
	keyOutput = "imatrix.state.output"
	keyChunk  = "imatrix.state.tokens_per_chunk"
	keyGroup  = "imatrix.state.group_chunks"
	keyNextN  = "imatrix.state.nextn"
)

// Calibrate is Collect with a State. It returns sums, or the sums of the state file completed with the remaining
// chunks. Both have the same bits as those of an uninterrupted run.
func (m *Model) Calibrate(ctx context.Context, r Run, sums *imatrix.Sums, c Calibration) (*imatrix.Sums, error) {
	if c.State == "" {
		return sums, m.Collect(ctx, r, sums, c.Importance)
	}
	// a power failure can bring back the second name that the state before the last one had
	if err := writer.FinishCommits([]string{c.State}); err != nil {
		return nil, err
	}
	err := statefile.Check(c.State)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !there && c.Every == 0 {
		return sums, m.Collect(ctx, r, sums, c.Importance)
	}
	id, err := m.stateKeys(ctx, r, sums, &c)
	if err != nil {
		return nil, err
	}
	if there {
		if sums, c.Done, err = readState(c.State, id, r.Chunks()); err != nil {
			return nil, err
		}
		if c.Resumed != nil {
			c.Resumed(c.Done)
		}
	}
	if c.Every > 0 {
		c.Save = func(done int) error {
			f, err := sums.State(append(id[:len(id):len(id)], gguf.KV{Key: keyDone, Value: gguf.Uint32(uint32(done))}))
			if err != nil {
				return err
			}
			sealed := statefile.Seal(f, f.Size)
			return writer.WriteFrom(ctx, c.State, sealed.Size, sealed, nil,
				writer.Options{Force: true, Inputs: m.source.Files})
		}
	}
	return sums, m.Collect(ctx, r, sums, c.Importance)
}

// stateKeys returns the keys and values that a state file must share with the run that resumes from it.
func (m *Model) stateKeys(ctx context.Context, r Run, sums *imatrix.Sums, c *Calibration) (gguf.Metadata, error) {
	merged := ""
	if sums.Len() > 0 {
		f, err := sums.State(nil)
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		if _, err := f.WriteTo(h); err != nil {
			return nil, err
		}
		merged = fmt.Sprintf("%x", h.Sum(nil))
	}
	model, err := m.Identity(ctx)
	return gguf.Metadata{
		{Key: keyText, Value: gguf.String(fmt.Sprintf("%x", c.Text))},
		{Key: keyChunk, Value: gguf.Uint32(uint32(r.Chunk))},
		{Key: keyModel, Value: gguf.String(model)},
		{Key: keyMerged, Value: gguf.String(merged)},
		{Key: keyOutput, Value: gguf.Bool(c.Output)},
		{Key: keyGroup, Value: gguf.Uint32(uint32(c.Group))},
		{Key: keyNextN, Value: gguf.Bool(r.NextN)},
	}, err
}

// mismatches describes a state file that differs from the run in a key of stateKeys.
var mismatches = map[string]string{
	keyText: "for another text", keyChunk: "with another chunk size", keyModel: "for another model",
	keyMerged: "with other merged files",
	keyOutput: "with another choice about the output matrix", keyGroup: "with another number of chunks per group",
	keyNextN: "with another choice about MTP (NextN) layers",
}

// readState returns the sums of a state file and the number of chunks that they cover.
func readState(path string, id gguf.Metadata, chunks int) (sums *imatrix.Sums, done int, err error) {
	f, err := statefile.Map(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	var md gguf.Metadata
	err = mmap.Guard(path, func() (err error) {
		data, err := statefile.Unseal(path, f.Bytes())
		if err == nil {
			sums, md, err = imatrix.ParseState(path, data)
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	for _, kv := range id {
		if v, ok := md.Get(kv.Key); !ok || v.String() != kv.Value.String() {
			return nil, 0, fault.Errorf(fault.Refused,
				"%s: left by an interrupted run %s; remove it to start over", path,
				mismatches[kv.Key])
		}
	}
	v, _ := md.Get(keyDone)
	n, ok := v.Int()
	if !ok || n < 1 {
		return nil, 0, fault.Errorf(fault.Broken, "%s: key %q is %v, want a number of chunks", path, keyDone, v)
	}
	if n > int64(chunks) {
		return nil, 0, fault.Errorf(fault.Refused,
			"%s: left by an interrupted run, covers %d chunks, want at most %d; remove it to start over",
			path, n, chunks)
	}
	return sums, int(n), nil
}

// Identity returns the identity of the model: see model/identity.
func (m *Model) Identity(ctx context.Context) (string, error) { return identity.Of(ctx, m.source) }
