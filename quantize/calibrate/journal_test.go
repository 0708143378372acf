package calibrate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/test/filetest"
)

// contents returns the blocks of all targets.
func contents(t *testing.T, m *model.Model, b *Blocks, targets []Target) (all []byte) {
	t.Helper()
	for _, target := range targets {
		s := b.Source(target)
		if s == nil {
			t.Fatalf("no blocks of %s", m.Tensors[target.Tensor].Name)
		}
		raw, err := s.Raw(new([]byte), 0, gguf.Rows(s.NE()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	return all
}

// TestResume interrupts runs anywhere and cuts their state anywhere: resumed, they give the same blocks and losses,
// and encode only what is missing.
func TestResume(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	ctx := context.Background()
	m := open(t)
	var targets []Target
	for i := range m.Tensors {
		if name := m.Tensors[i].Name; strings.HasPrefix(name, "blk.1.attn") && strings.HasSuffix(name, "k.weight") ||
			name == "blk.3.attn_v.weight" || name == "blk.5.attn_k.weight" {
			targets = append(targets, Target{i, gguf.TypeQ4_0})
		}
	}
	run := eval.Run{Tokens: text(2 * 32), Chunk: 32, Workers: 2}
	dir := t.TempDir()
	state := dir + "/state"
	options := func() Options { return Options{Run: run, Dir: dir, Passes: 2, Feedback: true} }
	whole, err := Run(ctx, m, targets, options())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	want := contents(t, m, whole, targets)
	resume := func(what string) {
		t.Helper()
		opt := options()
		opt.State = state
		b, err := Run(ctx, m, targets, opt)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer b.Close()
		if !bytes.Equal(contents(t, m, b, targets), want) {
			t.Errorf("%s: other blocks", what)
		}
		for i, l := range b.Errors {
			if l != whole.Errors[i] {
				t.Errorf("%s: %+v, want %+v", what, l, whole.Errors[i])
			}
		}
	}
	stopped, stop := context.WithCancel(ctx)
	opt := options()
	opt.State = state
	opt.Progress = func(done float64) {
		if done > 0.7 {
			stop()
		}
	}
	if _, err := Run(stopped, m, targets, opt); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	left, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	resume("interrupted")
	full, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) <= 40 || len(left) >= len(full) || !bytes.HasPrefix(full, left) {
		t.Errorf("%d bytes were left of %d", len(left), len(full))
	}
	for name, data := range map[string][]byte{
		"empty": nil, "cut in the head": full[:20], "a head that did not get to the disk": make([]byte, 40),
		"cut in a record": full[:len(full)-5], "all of it": full,
		"something after it": append(bytes.Clone(full), full[40:90]...),
		"a flipped bit":      func() []byte { b := bytes.Clone(full); b[len(b)/2] ^= 1; return b }(),
	} {
		if err := os.WriteFile(state, data, 0o666); err != nil {
			t.Fatal(err)
		}
		resume(name)
		if got, err := os.ReadFile(state); err != nil || !bytes.Equal(got, full) {
			t.Errorf("%s: another state afterwards, %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		data []byte
		kind error
	}{"another run": {append([]byte(journalMagic), full[9:]...), fault.Refused},
		"another file": {[]byte(strings.Repeat("text", 20)), fault.Broken}, "short": {[]byte("text"), fault.Broken}} {
		if c.kind == fault.Refused {
			c.data = bytes.Clone(full)
			c.data[20] ^= 1
		}
		if err := os.WriteFile(state, c.data, 0o666); err != nil {
			t.Fatal(err)
		}
		opt := options()
		opt.State = state
		if _, err := Run(ctx, m, targets, opt); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), state) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(state); err != nil || !bytes.Equal(got, c.data) {
			t.Errorf("%s: was changed", name)
		}
	}
	if err := os.WriteFile(state, full, 0o666); err != nil {
		t.Fatal(err)
	}
	opt = options()
	opt.State = dir + "/link"
	if err := os.Symlink(state, opt.State); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(ctx, m, targets, opt); !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), opt.State) {
		t.Errorf("a link: %v", err)
	}
}

// FuzzJournal checks that states of any content are read without a panic, and that accepted blocks are as the format
// defines them.
func FuzzJournal(f *testing.F) {
	m := &model.Model{Path: "made"}
	m.Tensors = append(m.Tensors, model.Tensor{Tensor: gguf.Tensor{Name: "blk.0.attn_q.weight", NE: []int64{32, 4},
		Type: gguf.TypeF32}})
	all := func(Target) bool { return true }
	var id [32]byte
	make := func(dir string) []byte {
		b, err := newBlocks(m, dir)
		if err != nil {
			f.Fatal(err)
		}
		defer b.Close()
		j, err := openJournal(dir+"/seed", id, b, all)
		if err != nil {
			f.Fatal(err)
		}
		for i := range 2 {
			k := b.of(Target{0, gguf.TypeQ4_0}, 2)
			if err := b.put(k, int64(2*i), bytes.Repeat([]byte{byte(i)}, 36)); err != nil {
				f.Fatal(err)
			}
			if err := j.add(b, k, i, 7, Result{2, 1}, traces{}); err != nil {
				f.Fatal(err)
			}
		}
		if err := j.close(); err != nil {
			f.Fatal(err)
		}
		data, err := os.ReadFile(dir + "/seed")
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	seed := make(f.TempDir())
	f.Add(seed)
	f.Add(seed[:len(seed)-40])
	f.Add(seed[:30])
	// All executions have the same files: making new ones takes longer than reading a state.
	dir := f.TempDir()
	state, err := os.Create(dir + "/state")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { state.Close() })
	blocks, err := newBlocks(m, dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { blocks.Close() })
	f.Fuzz(func(t *testing.T, data []byte) {
		filetest.Refill(t, state, data)
		b := &Blocks{m: m, file: blocks.file, tensors: map[Target]*encodedTensor{}}
		j, err := openJournal(state.Name(), id, b, all)
		if err != nil {
			if !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Refused) {
				t.Errorf("%v", err)
			}
			return
		}
		if err := j.close(); err != nil {
			t.Error(err)
		}
		left := filetest.Read(t, state)
		head := seed[:len(journalMagic)+len(id)]
		if !bytes.HasPrefix(data, left) && (len(data) > len(head) || !bytes.Equal(left, head)) {
			t.Error("the state is neither a beginning of the old one nor a new one")
		}
		for e := range j.done {
			if e.Tensor != 0 || !Supported(e.Type) {
				t.Errorf("%+v", e)
			}
		}
	})
}
