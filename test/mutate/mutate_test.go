package mutate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/eval/memory"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/publish/verify"
	"ggforge/quantize"
	"ggforge/test/defects"
	"ggforge/test/hftest"
	"ggforge/writer"
)

// go test ./test/mutate -mutants 100 -seed 7 (make mutate) runs more of them; -only SPEC
// those of one spec, -mutant N one alone.
var (
	mutants = flag.Int("mutants", 0,
		"mutants of each made-up model, of config.json and of metadata each; 0 for one of some models")
	seed   = flag.Uint64("seed", 1, "seed of the random changes")
	limit  = flag.Duration("limit", 0, "end after about this time; 0 for never")
	only   = flag.String("only", "", "the only spec")
	single = flag.Int("mutant", -1, "the only mutant of each model")
)

const (
	maxBytes   = 1 << 30 // that a mutant may make the program allocate, freed ones included
	maxSeconds = 30
)

// TestMutants changes config.json and metadata of made-up models. Whatever the values, no step panics, runs for long
// or allocates much, and an error has a kind.
func TestMutants(t *testing.T) {
	each, some := *mutants, 1
	if each == 0 {
		if each, some = 1, 3; !cpu.HasVectors {
			some = 40
		}
	}
	start, count := time.Now(), 0
	specs := append(hftest.Specs(), hftest.Encoders()...)
	for i, s := range specs {
		if s.Base != nil || *only != "" && s.Name != *only || *only == "" && i%some != 0 {
			continue
		}
		if *limit > 0 && time.Since(start) > *limit {
			t.Logf("ended at %s", s.Name)
			break
		}
		v := s.All()[0]
		if *mutants > 0 { // another variant with another seed
			v = s.All()[int(*seed)%len(s.All())]
		}
		count += mutate(t, s, v, each)
	}
	t.Logf("%d mutants in %v", count, time.Since(start).Round(time.Second))
}

// mutate runs mutants of one model.
func mutate(t *testing.T, s *hftest.Spec, v hftest.Variant, each int) (count int) {
	t.Helper()
	dir := t.TempDir()
	src, err := s.Write(dir, v)
	if err != nil {
		t.Fatal(err)
	}
	of := step{t: t, name: s.Name + "/" + v.Name, dir: dir}
	config := filepath.Join(src, "config.json")
	text, err := os.ReadFile(config)
	for n := range each {
		if err != nil || *single >= 0 && n != *single {
			continue // no config.json, or another mutant
		}
		r := of.source(n)
		changed, what := Config(text, r)
		of.what = fmt.Sprintf("%s, mutant %d of config.json (%s)", of.name, n, what)
		if err := os.WriteFile(config, changed, 0o666); err != nil {
			t.Fatal(err)
		}
		count++
		out := filepath.Join(dir, "mutant.gguf")
		if of.run("convert", func(ctx context.Context) error { return of.convert(ctx, s, src, out) }) {
			of.use(out)
		}
	}
	if err == nil {
		if err := os.WriteFile(config, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	plain, out := filepath.Join(dir, "plain.gguf"), filepath.Join(dir, "changed.gguf")
	of.what = of.name
	if err := of.convert(t.Context(), s, src, plain); err != nil {
		return count // it needs options
	}
	for n := range each {
		if *single >= 0 && n != *single {
			continue
		}
		r := of.source(1<<32 + n)
		count++
		os.Remove(out)
		if err := Edit(t.Context(), plain, out, func(m *gguf.Metadata) {
			of.what = fmt.Sprintf("%s, mutant %d of metadata (%s)", of.name, n, Metadata(m, r))
		}); err != nil {
			of.judge("edit", err)
			continue
		}
		of.use(out)
	}
	return count
}

// step is a model that is changed.
type step struct {
	t               *testing.T
	name, dir, what string
}

// source returns the random numbers of a mutant.
func (s *step) source(n int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(s.name))
	return rand.New(rand.NewPCG(*seed, h.Sum64()+uint64(n)))
}

// run runs one step and reports whether it went well.
func (s *step) run(name string, f func(ctx context.Context) error) (ok bool) {
	ctx, cancel := context.WithTimeout(s.t.Context(), maxSeconds*time.Second)
	defer cancel()
	late := time.AfterFunc(2*maxSeconds*time.Second, func() { panic(s.what + ": " + name + " does not end") })
	defer late.Stop()
	defer func() {
		if x := recover(); x != nil {
			s.t.Errorf("%s: %s panics: %v\n%s", s.what, name, x, debug.Stack())
			ok = false
		}
	}()
	// a panic of another goroutine ends the program: this file names the mutant
	if *mutants > 0 {
		if err := os.WriteFile(filepath.Join(os.TempDir(), "last-mutant"), []byte(s.what+": "+name+"\n"),
			0o666); err != nil {
			s.t.Fatal(err)
		}
	}
	before := defects.Allocated()
	err := f(ctx)
	if n := defects.Allocated() - before; n > maxBytes {
		s.t.Errorf("%s: %s allocates %d bytes", s.what, name, n)
	}
	s.judge(name, err)
	return err == nil
}

// judge fails for an error without a kind.
func (s *step) judge(name string, err error) {
	for _, kind := range []error{nil, fault.Usage, fault.Broken, fault.Unsupported, fault.Refused, fault.Incomplete} {
		if errors.Is(err, kind) {
			return
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return // a file that a changed config.json names
	}
	s.t.Errorf("%s: %s: an error without a kind: %v", s.what, name, err)
}

func (s *step) convert(ctx context.Context, spec *hftest.Spec, src, out string) error {
	job, err := convert.Prepare(ctx, src, Options(spec, src, convert.F32))
	if err != nil {
		return err
	}
	defer job.Close()
	_, err = job.Write(ctx, out, writer.Options{Force: true})
	return err
}

// use reads and runs a file as commands do.
func (s *step) use(file string) {
	s.run("memory", func(context.Context) error {
		set, err := gguf.OpenSet(file)
		if err != nil {
			return err
		}
		defer set.Close()
		for _, opt := range []memory.Options{{}, {Context: 32768, Sequences: 3}} {
			if _, err := memory.Estimate(memory.From(set), opt); err != nil {
				return err
			}
		}
		return nil
	})
	s.run("verify", func(ctx context.Context) error {
		_, err := verify.Model(ctx, file, verify.Options{Workers: 1})
		return err
	})
	s.run("quantize", func(ctx context.Context) error {
		recipe, _ := quantize.LookupRecipe("Q4_K_M")
		job, err := quantize.Prepare(ctx, file, quantize.Options{PlanOptions: quantize.PlanOptions{Recipe: recipe,
			Pure: true}})
		if err != nil {
			return err
		}
		defer job.Close()
		_, err = job.Write(ctx, filepath.Join(s.dir, "quantized.gguf"), writer.Options{Force: true})
		return err
	})
	s.run("eval", func(ctx context.Context) error {
		m, err := model.Open(file)
		if err != nil {
			return err
		}
		defer m.Close()
		e, err := eval.New(m)
		if err != nil {
			return err
		}
		tokens := make([]int32, 32)
		for i := range tokens {
			tokens[i] = int32(i * 7 % e.Vocab())
		}
		if !e.Predicts() {
			_, err = e.Embed(ctx, [][]int32{tokens}, eval.EmbedOptions{Pooling: e.Pooling(), Workers: 1})
			return err
		}
		_, err = e.Perplexity(ctx, eval.Run{Tokens: tokens, Chunk: 16, Workers: 1})
		return err
	})
}
