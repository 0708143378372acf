package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/partfile"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/internal/io/bucket"
	"ggforge/model/identity"
	"ggforge/writer"
)

// shares selects the chunks that a process runs, if it is one of several.
type shares struct{ runs.Shares }

// job returns the job whose parts several processes run: the number of items, and all facts that the result depends
// on.
func (s *shares) job(kind string, items int, run eval.Run, facts ...partfile.Fact) *partfile.Job {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, run.Tokens) // writing to a hash never fails
	return &partfile.Job{Out: s.Name, Kind: kind, Items: items, Facts: append([]partfile.Fact{
		{Name: "program", Value: runs.Program()},
		{Name: "text, as SHA-256 of its tokens,", Value: fmt.Sprintf("%x", h.Sum(nil))},
		{Name: "size of chunks", Value: strconv.Itoa(run.Chunk)},
		{Name: "first predicted position", Value: strconv.Itoa(run.First)},
	}, facts...)}
}

// modelFact returns a fact about a model.
func modelFact(ctx context.Context, name string, m *eval.Model) (partfile.Fact, error) {
	id, err := m.Identity(ctx)
	return partfile.Fact{Name: name + ", as its identity,", Value: id}, err
}

// partResult is the JSON output for a part, described in doc.go.
type partResult struct {
	Part   string `json:"part"`
	Output string `json:"output"`
	Bytes  int64  `json:"bytes"`
	// From and To are the part's chunks, [From, To) of Chunks.
	From   int `json:"from_chunk"`
	To     int `json:"to_chunk"`
	Chunks int `json:"chunks"`
	// Before is set if the part file existed already.
	Before bool `json:"done_before"`
	costResult
}

// share is the work of a part.
type share struct {
	job    *partfile.Job
	group  int // chunks of an item
	run    eval.Run
	models int            // that run over the tokens
	write  writer.Options // Force: a file of a different job may be replaced
	// found computes the results of items [from, to) of the job.
	found func(from, to int) ([]partfile.Section, error)
}

// run runs a part, unless it is there already, and prints the result.
func (s *shares) run(ctx context.Context, cmd *cli.Command, cost *tool.Cost, x share) error {
	chunks := len(x.run.Tokens) / x.run.Chunk
	from, to := s.Part.Range(x.job.Items)
	r := partResult{Part: s.Part.String(), Output: x.job.Path(s.Part), From: min(from*x.group, chunks),
		To: min(to*x.group, chunks), Chunks: chunks}
	defer x.job.Close()
	var err error
	if r.Before, err = x.job.Check(ctx, s.Part, x.write.Force); err != nil {
		return err
	}
	tokens := 0
	if r.Before {
		if r.Bytes, err = x.job.Size(s.Part); err != nil {
			return err
		}
	} else {
		x.write.Force = true
		if !bucket.Is(r.Output) {
			if err := writer.Writable(r.Output, x.write); err != nil {
				return err
			}
		}
		tool.NoteScalar(cmd)
		sections, err := x.found(from, to)
		if err != nil {
			return err
		}
		if r.Bytes, err = x.job.Write(ctx, s.Part, sections, x.write); err != nil {
			return err
		}
		tokens = (r.To - r.From) * x.run.Chunk * x.models
	}
	r.costResult = endCost(cost, tokens)
	w := cmd.Root().Writer
	if cmd.Bool("json") {
		return tool.WriteJSON(w, r)
	}
	before := ""
	if r.Before {
		before = ", there already"
	}
	w = tool.InfoWriter(cmd)
	fmt.Fprintf(w, "%s: %s, chunks [%d, %d) of %d%s\n", r.Output, tool.Bytes(r.Bytes), r.From, r.To, chunks, before)
	_, err = fmt.Fprintln(w, r.costResult)
	return err
}

// gathered prints a note with the number of parts of a result.
func gathered(cmd *cli.Command, job *partfile.Job, parts int) {
	tool.Note(cmd, fmt.Sprintf("put together from %d parts; %s.part-*-of-%d are not needed any more", parts,
		job.Out, parts))
}

// numbers returns a section with float64 values.
func numbers(values []float64) partfile.Section {
	b := make([]byte, 0, 8*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return partfile.Bytes(b)
}

// losses joins the losses of all parts.
func losses(ctx context.Context, job *partfile.Job, chunks, predicted int) (list []float64, parts int, err error) {
	parts, err = job.Gather(ctx, func(sections [][]byte) error {
		if len(sections) != 1 || len(sections[0])%8 != 0 {
			return fault.Errorf(fault.Broken, "%d sections, want one of float64 numbers", len(sections))
		}
		for b := sections[0]; len(b) > 0; b = b[8:] {
			v := math.Float64frombits(binary.LittleEndian.Uint64(b))
			if v-v != 0 || v < 0 {
				return fault.Errorf(fault.Broken,
					"predicted token %d has a loss of %v, want a finite number, not below 0", len(list), v)
			}
			list = append(list, v)
		}
		return nil
	})
	if err == nil && len(list) != predicted {
		err = fault.Errorf(fault.Broken, "%s: parts have %d predicted tokens of %d chunks, want %d", job.Out, len(list),
			chunks, predicted)
	}
	return list, parts, err
}

// perChunk returns the number of predicted tokens of each chunk.
func perChunk(r eval.Run) int {
	if r.First == 0 {
		r.First = r.Chunk / 2
	}
	return r.Chunk - r.First - 1
}

// measured joins the results of all parts, for each model.
func measured(ctx context.Context, job *partfile.Job, models, chunks, predicted int) (list []*eval.Measured,
	parts int, err error) {
	list = make([]*eval.Measured, models)
	for i := range list {
		list[i] = new(eval.Measured)
	}
	parts, err = job.Gather(ctx, func(sections [][]byte) error {
		if len(sections) != models {
			return fault.Errorf(fault.Broken, "%d sections, want %d, one for each model", len(sections), models)
		}
		for i, b := range sections {
			var next eval.Measured
			if err := next.UnmarshalBinary(b); err != nil {
				return err
			}
			if err := list[i].Append(&next); err != nil {
				return err
			}
		}
		return nil
	})
	for _, x := range list {
		if c, p := x.Size(); err == nil && (c != chunks || p != predicted) {
			err = fault.Errorf(fault.Broken, "%s: parts have %d predicted tokens of %d chunks, want %d of %d", job.Out,
				p, c, predicted, chunks)
		}
	}
	return list, parts, err
}

// sections returns the results of a part, a section for each model.
func sections(found []*eval.Measured) (list []partfile.Section, err error) {
	for _, x := range found {
		b, err := x.MarshalBinary()
		if err != nil {
			return nil, err
		}
		list = append(list, partfile.Bytes(b))
	}
	return list, nil
}

// groupsOf runs groups [from, to) of chunks, and returns the sums of each group.
func (r *imatrixRequest) groupsOf(ctx context.Context, m *reader, from, to int) (list []partfile.Section, err error) {
	run := m.run
	size := r.Collect.Group * run.Chunk
	for i := from; i < to; i++ {
		sums, one := imatrix.NewSums(run.Chunk), run
		one.Tokens = run.Tokens[i*size : min((i+1)*size, len(run.Tokens))]
		if run.Progress != nil {
			one.Progress = func(p eval.Progress) {
				run.Progress(eval.Progress{Done: (float64(i-from) + p.Done) / float64(to-from)})
			}
		}
		if err := m.Model.Collect(ctx, one, sums, eval.Importance{Output: r.Collect.Output}); err != nil {
			return nil, err
		}
		f, err := sums.State(nil)
		if err != nil {
			return nil, err
		}
		list = append(list, partfile.Section{Size: f.Size, From: f})
	}
	return list, nil
}

// join adds the sums of all parts to sums, which may have merged files.
func (r *imatrixRequest) join(ctx context.Context, job *partfile.Job, sums *imatrix.Sums) (parts int, err error) {
	groups := 0
	parts, err = job.Gather(ctx, func(sections [][]byte) error {
		for i, b := range sections {
			more, _, err := imatrix.ParseState("section "+strconv.Itoa(i), b)
			if err == nil {
				err = sums.Join(more)
			}
			if err != nil {
				return err
			}
			groups++
		}
		return nil
	})
	if err == nil && groups != job.Items {
		err = fault.Errorf(fault.Broken, "%s: parts have %d groups of chunks, want %d", job.Out, groups, job.Items)
	}
	return parts, err
}

// fileFact returns a fact about a file.
func fileFact(name, path string) (partfile.Fact, error) {
	id, err := identity.OfFile(path)
	return partfile.Fact{Name: name + ", as its identity,", Value: id.String()}, err
}
