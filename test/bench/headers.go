package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ggforge/gguf"
	"ggforge/internal/text/size"
)

// The model whose header is read and changed: the shapes and the vocabulary size of a Llama of 8 billion weights.
const (
	headerLayers, headerHidden, headerKV, headerFFN, headerVocab = 32, 4096, 1024, 14336, 128256
	headerReserve                                                = 4096
)

// headerModel returns the metadata and tensors of the model.
func headerModel() (gguf.Metadata, []gguf.Tensor) {
	tokens, merges := make([]gguf.Value, headerVocab), make([]gguf.Value, 2*headerVocab)
	for i := range tokens {
		tokens[i] = gguf.String(fmt.Sprintf("token%d", i))
	}
	for i := range merges {
		merges[i] = gguf.String(fmt.Sprintf("left%d right%d", i, i))
	}
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "general.name", Value: gguf.String("a")},
		{Key: "general.file_type", Value: gguf.Uint32(1)},
		{Key: "llama.block_count", Value: gguf.Uint32(headerLayers)},
		{Key: "llama.context_length", Value: gguf.Uint32(8192)},
		{Key: "llama.embedding_length", Value: gguf.Uint32(headerHidden)},
		{Key: "llama.feed_forward_length", Value: gguf.Uint32(headerFFN)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(32)},
		{Key: "llama.attention.head_count_kv", Value: gguf.Uint32(8)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: gguf.Float32(1e-5)},
		{Key: "llama.vocab_size", Value: gguf.Uint32(headerVocab)},
		{Key: "llama.rope.dimension_count", Value: gguf.Uint32(128)},
		{Key: gguf.KeyReserve, Value: gguf.Uint8s(make([]byte, headerReserve))}, // where ggtool meta --reserve puts it
		{Key: "tokenizer.ggml.model", Value: gguf.String("gpt2")},
		{Key: "tokenizer.ggml.pre", Value: gguf.String("llama-bpe")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Array(gguf.StringType, tokens...)},
		{Key: "tokenizer.ggml.token_type", Value: gguf.Int32s(slices.Repeat([]int32{1}, headerVocab))},
		{Key: "tokenizer.ggml.merges", Value: gguf.Array(gguf.StringType, merges...)},
		{Key: "tokenizer.chat_template", Value: gguf.String("a")},
	}
	f16 := func(name string, ne ...int64) gguf.Tensor { return gguf.Tensor{Name: name, NE: ne, Type: gguf.TypeF16} }
	f32 := func(name string) gguf.Tensor {
		return gguf.Tensor{Name: name, NE: []int64{headerHidden}, Type: gguf.TypeF32}
	}
	tensors := []gguf.Tensor{f16("token_embd.weight", headerHidden, headerVocab),
		f16("output.weight", headerHidden, headerVocab), f32("output_norm.weight")}
	for i := range headerLayers {
		b := fmt.Sprintf("blk.%d.", i)
		tensors = append(tensors, f32(b+"attn_norm.weight"), f32(b+"ffn_norm.weight"),
			f16(b+"attn_q.weight", headerHidden, headerHidden), f16(b+"attn_k.weight", headerHidden, headerKV),
			f16(b+"attn_v.weight", headerHidden, headerKV), f16(b+"attn_output.weight", headerHidden, headerHidden),
			f16(b+"ffn_gate.weight", headerHidden, headerFFN), f16(b+"ffn_up.weight", headerHidden, headerFFN),
			f16(b+"ffn_down.weight", headerFFN, headerHidden))
	}
	return m, tensors
}

// headerJob is a command that reads or changes a header.
type headerJob struct {
	name   string
	argv   func(round int) []string
	inside bool // it runs in the chroot

	wall    []float64 // of each round, in seconds
	written []float64 // bytes of files
}

// benchHeaders measures commands that need only the header of a large file, then copies with another header.
func benchHeaders(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	m, tensors := headerModel()
	weights := gguf.Layout(tensors, gguf.DefaultAlignment)
	header := gguf.AppendHeader(nil, m, tensors, gguf.DefaultAlignment)
	const sparse, theirs = "sparse.gguf", "sparse-ref.gguf"
	for _, name := range []string{sparse, theirs} {
		if err := errors.Join(os.WriteFile(dir.path(name), header, 0o666),
			os.Truncate(dir.path(name), int64(len(header))+weights)); err != nil {
			return err
		}
	}
	ours := func(argv ...string) func(int) []string {
		argv = append([]string{filepath.Join(opt.bin, "ggtool")}, argv...)
		return func(int) []string { return argv }
	}
	file := dir.path(sparse)
	edit := func(more ...string) []string {
		return append(append([]string{filepath.Join(opt.bin, "ggtool"), "meta", "--progress", "none"}, more...), file)
	}
	jobs := []*headerJob{
		{name: "ggtool inspect", argv: ours("inspect", file)},
		{name: "ggtool inspect --json --full", argv: ours("inspect", "--json", "--full", file)},
		{name: "ggtool inspect --get general.name", argv: ours("inspect", "--get", "general.name", file)},
		{name: "ggtool verify --header-only", argv: ours("verify", "--header-only", file)},
		{name: "ggtool meta --dry-run", argv: func(int) []string {
			return edit("--dry-run", "--set",
				"general.file_type=7")
		}},
		{name: "ggtool meta --set of a number, in place",
			argv: func(round int) []string { return edit("--set", "llama.context_length="+strconv.Itoa(8191-round)) }},
		{name: "ggtool meta --set of a longer name, in place", argv: func(round int) []string {
			return edit("--set", "general.name="+strings.Repeat("x", 20*(1+round)))
		}},
		{name: "ggtool meta --set of a longer template, in place", argv: func(round int) []string {
			return edit("--set", "tokenizer.chat_template="+strings.Repeat("x", 20*(1+round)))
		}},
	}
	if opt.root != "" {
		in := func(argv ...string) func(int) []string { return func(int) []string { return argv } }
		jobs = append(jobs,
			&headerJob{name: "reference: gguf-dump", inside: true, argv: in("gguf-dump", dir.inside(theirs))},
			&headerJob{name: "reference: gguf-set-metadata of a number, in place", inside: true,
				argv: in("gguf-set-metadata", "--force", dir.inside(theirs), "llama.context_length", "4096")})
	}
	for round := range opt.rounds {
		for _, j := range jobs {
			if err := j.run(ctx, dir, round); err != nil {
				return fmt.Errorf("%s: %w", j.name, err)
			}
			progress("round %d/%d  %s: %.1f ms", round+1, opt.rounds, j.name, 1e3*j.wall[round])
		}
	}
	blocks, err := diskBytes(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "## Headers\n\n"+
		"A file of %s, a Llama of 8 billion weights in F16 with %d tokens, %d tensors and a header of %s, whose "+
		"tensors are a hole\n"+
		"that takes no room on the disk. Medians of %d rounds: the whole process, its start included; verify makes a "+
		"tokenizer of the\n"+
		"vocabulary. Written: what the process gave to files by the system's account. In place, that is the sectors "+
		"that change, and\n"+
		"before them a record of what they were and become, which makes the change safe from crashes, all synced. A "+
		"longer template\n"+
		"moves the vocabulary; a longer name does not, since --reserve leaves its room between the two. After all "+
		"changes the file\n"+
		"takes %s on the disk: no byte of a tensor was written.\n\n",
		size.Text(int64(len(header))+weights), headerVocab, len(tensors), size.Text(int64(len(header))), opt.rounds,
		size.Text(blocks))
	t := table{left: 1, head: []string{"command", "ms", "written kB"}}
	for _, j := range jobs {
		written := dash
		if !j.inside { // the reference writes through a mapping, which does not count
			written = number(median(j.written) / 1e3)
		}
		t.add(j.name, number(1e3*median(j.wall)), written)
	}
	t.write(w)
	if err := errors.Join(os.Remove(file), os.Remove(dir.path(theirs))); err != nil {
		return err
	}
	return benchCopies(ctx, w, opt, dir)
}

// run runs the command once.
func (j *headerJob) run(ctx context.Context, dir workDir, round int) error {
	argv := j.argv(round)
	if j.inside {
		argv = append([]string{"chroot", dir.root}, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	written := writtenBytes(cmd.Process.Pid) // waits for its end
	err := cmd.Wait()
	j.wall = append(j.wall, time.Since(start).Seconds())
	if written >= 0 {
		j.written = append(j.written, float64(written-int64(out.Len()+log.Len())))
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, log.Bytes())
	}
	if out.Len() == 0 && !j.inside {
		return errors.New("prints nothing")
	}
	return nil
}

// benchCopies measures copies of a file with another header.
func benchCopies(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	if err := checkDisk(dir, opt.size); err != nil {
		return err
	}
	const name = "data.gguf"
	const row = 4096
	tensors := []gguf.Tensor{}
	for i := range 100 {
		tensors = append(tensors, gguf.Tensor{Name: fmt.Sprintf("t%d", i), NE: []int64{row, max(1, opt.size/200/row)},
			Type: gguf.TypeF16})
	}
	weights := gguf.Layout(tensors, gguf.DefaultAlignment)
	header := gguf.AppendHeader(nil, gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}}, tensors,
		gguf.DefaultAlignment)
	f, err := os.Create(dir.path(name))
	if err != nil {
		return err
	}
	random := rand.NewChaCha8([32]byte{})
	_, err = io.Copy(f, io.MultiReader(bytes.NewReader(header), io.LimitReader(random, weights)))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	in := dir.path(name)
	jobs := []*job{
		{name: "cp", command: func(out string) []string { return []string{"cp", "--reflink=never", in, out} }},
		{name: "cp, sync", command: func(out string) []string {
			return []string{"sh", "-c", `cp --reflink=never "$0" "$1" && sync "$1"`, in, out}
		}},
	}
	for _, n := range slices.Compact([]int{1, opt.threads}) {
		jobs = append(jobs, &job{name: "ggtool meta -o, " + plural(n), command: func(out string) []string {
			return []string{"env", "GOMAXPROCS=" + strconv.Itoa(n), filepath.Join(opt.bin, "ggtool"), "meta",
				"--progress", "none", "--set", "general.name=str:another", "-o", out, in}
		}})
	}
	if opt.root != "" {
		jobs = append(jobs, &job{name: "reference: gguf-new-metadata", inside: true,
			command: func(out string) []string {
				return []string{"gguf-new-metadata", "--general-name", "another", dir.inside(name), out}
			}})
	}
	for round := range opt.rounds {
		for _, j := range jobs {
			j.size = weights
			if err := j.run(ctx, dir, round == 0); err != nil {
				return err
			}
			progress("round %d/%d  %s: %.2f s", round+1, opt.rounds, j.name, j.runs[round].wall)
		}
	}
	fmt.Fprintf(w, "### Copies\n\n"+
		"A file of %s, in the page cache, with another header: the kernel copies its tensors. ggtool syncs what it "+
		"has written; cp alone and\n"+
		"the reference do not.\n\n", size.Text(int64(len(header))+weights))
	t := table{left: 1, head: []string{"command", "wall s", "CPU s"}}
	sums := map[string]bool{}
	for _, j := range jobs {
		c := j.median()
		t.add(j.name, number(c.wall), number(c.cpu))
		if j.command("")[0] != "cp" && j.command("")[0] != "sh" {
			sums[j.sum] = true
		}
	}
	t.write(w)
	if err := os.Remove(in); err != nil {
		return err
	}
	if len(sums) > 1 {
		return fmt.Errorf("copies: %w", errBytes)
	}
	return nil
}
