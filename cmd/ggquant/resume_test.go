package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tool "ggforge/cmd/internal/cli"
	"ggforge/internal/kernel/cpu"
	"ggforge/test/hftest"
)

// TestResume checks that the same command with --resume resumes an interrupted one, with the same output, and that
// state of another run and files of other programs are refused.
func TestResume(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels, which change no byte")
	}
	source, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/"
	text, state := dir+"text.txt", dir+"out.gguf.partial.blocks"
	if err := os.WriteFile(text, source[:2000], 0o666); err != nil {
		t.Fatal(err)
	}
	args := func(out string, more ...string) []string {
		list := append([]string{"ggquant", "--calibrate", text, "-c", "32", "--chunks", "2", "--effort", "high",
			"--progress", "none",
			"--tensor-type", "blk.[1-5].=f16", "--token-embedding-type", "f16", "--leave-output-tensor"}, more...)
		return append(list, "../../test/testdata/gollama", dir+out, "Q4_0")
	}
	run := func(ctx context.Context, args []string) error {
		cmd := command()
		cmd.Writer, cmd.ErrWriter = new(bytes.Buffer), new(bytes.Buffer)
		return tool.Run(ctx, cmd, args)
	}
	if err := run(t.Context(), args("want.gguf")); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { // as soon as blocks are chosen
		for ctx.Err() == nil {
			if st, err := os.Stat(state); err == nil && st.Size() > 200000 {
				stop()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	interrupted := run(ctx, args("out.gguf", "--resume"))
	stop()
	if tool.Code(interrupted) != 130 {
		t.Fatalf("was not interrupted: %v", interrupted)
	}
	if st, err := os.Stat(state); err != nil || st.Size() <= 200000 {
		t.Fatalf("no state after %v: %v", interrupted, err)
	}
	if err := run(t.Context(), args("out.gguf", "--resume", "-c", "16")); tool.Code(err) != 5 ||
		!strings.Contains(err.Error(), state) {
		t.Errorf("other chunks: %v", err)
	}
	if err := run(t.Context(), args("out.gguf", "--resume")); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(dir + "want.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(dir + "out.gguf"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the output differs from that of an uninterrupted run, %v", err)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the state is left")
	}
	if err := os.WriteFile(state, source[:100], 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{args("out.gguf", "--force", "--resume"), 3, "not a calibration state file"},
		{args("out.gguf", "--force"), 2, state},
	} {
		if err := run(t.Context(), c.args); tool.Code(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %d, %s", c.args, err, c.code, c.want)
		}
	}
	if got, err := os.ReadFile(state); err != nil || !bytes.Equal(got, source[:100]) {
		t.Error("a file of the user's was changed")
	}
	if got, err := os.ReadFile(text); err != nil || !bytes.Equal(got, source[:2000]) {
		t.Error("the text was changed")
	}
}

// TestResumeBest is TestResume for --effort best and two outputs, each with a state file.
func TestResumeBest(t *testing.T) {
	if !cpu.HasVectors || testing.Short() {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	in, err := hftest.Lookup("mixtral").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/"
	text, state := dir+"text.txt", dir+"out/Q4_0.gguf.partial.blocks"
	if err := os.WriteFile(text, source[:1000], 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, out string, more ...string) error {
		cmd := command()
		cmd.Writer, cmd.ErrWriter = new(bytes.Buffer), new(bytes.Buffer)
		args := []string{"ggquant", "--calibrate", text, "-c", "16", "--chunks", "2", "--effort", "best", "--progress",
			"none", "--tensor-type", "(output|attn_v|gate_exps)=f16",
			"--name-template", "{FTYPE}.gguf", "--out-dir", dir + out}
		return tool.Run(ctx, cmd, slices.Concat(args, more, []string{in, "Q4_0", "Q5_0"}))
	}
	if err := run(t.Context(), "want"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { // as soon as blocks of the second output are chosen
		for ctx.Err() == nil {
			if st, err := os.Stat(state + ".2"); err == nil && st.Size() > 4000 {
				stop()
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	interrupted := run(ctx, "out", "--resume")
	stop()
	if tool.Code(interrupted) != 130 {
		t.Fatalf("was not interrupted: %v", interrupted)
	}
	if err := run(t.Context(), "out", "--resume", "--token-embedding-type", "q5_0"); tool.Code(err) != 5 ||
		!strings.Contains(err.Error(), state) {
		t.Errorf("other types: %v", err)
	}
	if err := run(t.Context(), "out", "--resume"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/Q4_0.gguf", "/Q5_0.gguf"} {
		want, err := os.ReadFile(dir + "want" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(dir + "out" + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from the output of an uninterrupted run, %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("left: %v, %v", left, err)
	}
}
