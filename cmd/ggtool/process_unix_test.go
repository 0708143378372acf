//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/writer"
)

// TestMain runs the command itself in processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv("GGTOOL_PROCESS") != "" {
		main()
	}
	os.Exit(m.Run())
}

// process returns the command as a separate process.
func process(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "GGTOOL_PROCESS=1")
	return cmd
}

// sparse makes a sparse GGUF file with one tensor of zeros, mib MiB long.
func sparse(t *testing.T, name string, mib int64) string {
	t.Helper()
	tensors := []gguf.Tensor{{Name: "t.weight", NE: []int64{1 << 10, mib << 8}, Type: gguf.TypeF32}}
	size := gguf.Layout(tensors, 32)
	header := gguf.AppendHeader(nil, gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}}, tensors,
		32)
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, header, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(len(header))+size); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDiffChanged changes one of two files while they are compared.
func TestDiffChanged(t *testing.T) {
	if _, err := os.Stat("/proc/self/maps"); err != nil {
		t.Skip("nothing shows when a process has opened a file")
	}
	a, b := sparse(t, "a.gguf", 512), sparse(t, "b.gguf", 512)
	cmd := process("diff", a, b)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() }).Stop()
	for {
		mapped, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(mapped), b) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := os.Chtimes(a, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("got %v, want exit code 3", err)
	}
}

// TestSignalWhileReading interrupts a comparison and an export.
func TestSignalWhileReading(t *testing.T) {
	a, b := sparse(t, "a.gguf", 16<<10), sparse(t, "b.gguf", 16<<10)
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		name string
		args []string
		sig  os.Signal
	}{
		{"diff", []string{"diff", a, b}, syscall.SIGINT},
		{"export", []string{"export", "--progress", "none", sparse(t, "c.gguf", 1<<10), out}, syscall.SIGHUP},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stderr bytes.Buffer
			// the child inherits ignored signals, as under nohup: caught here, the signal is not ignored there
			caught := make(chan os.Signal, 1)
			signal.Notify(caught, c.sig)
			defer signal.Stop(caught)
			cmd := process(c.args...)
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }).Stop()
			untilOpen(cmd.Process.Pid, ".gguf")
			cmd.Process.Signal(c.sig)
			sent := time.Now()
			cmd.Wait()
			if cmd.ProcessState.ExitCode() != 130 ||
				stderr.String() != "ggtool: interrupted; no temporary files are left\n" ||
				time.Since(sent) > time.Minute {
				t.Errorf("%v after %v, printed %q", cmd.ProcessState, time.Since(sent), stderr.String())
			}
			if _, err := os.Lstat(out); err == nil {
				t.Error("the directory is still there")
			}
		})
	}
}

// untilOpen waits until a process has a file open whose name has this ending, or a third of a second where the system
// does not list open files.
func untilOpen(pid int, ending string) {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	if _, err := os.Stat(folder); err != nil {
		time.Sleep(time.Second / 3)
		return
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		list, _ := os.ReadDir(folder)
		for _, e := range list {
			if name, _ := os.Readlink(filepath.Join(folder, e.Name())); strings.HasSuffix(name, ending) {
				return
			}
		}
	}
}

// TestInterruptedOutput ends the context before anything is printed.
func TestInterruptedOutput(t *testing.T) {
	dir := t.TempDir()
	a, b := write(t, dir, "a", 0), write(t, dir, "b", 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{{"inspect", a}, {"inspect", "--json", a}, {"diff", a, b}} {
		if code, out, _ := ggtool(ctx, args...); code != 130 || out != "" {
			t.Errorf("%q: exit code %d, printed %q", args, code, out)
		}
	}
}

// TestLostResults prints results to a device that is full.
func TestLostResults(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	dir := t.TempDir()
	a, b := write(t, dir, "a", 0), write(t, dir, "b", 1)
	for _, args := range [][]string{{"inspect", a}, {"inspect", "--json", a}, {"diff", a, b}, {"--help"}, {"--version"},
		{"export", "--progress", "none", small(t), filepath.Join(dir, "out")}} {
		var stderr bytes.Buffer
		cmd := process(args...)
		cmd.Stdout, cmd.Stderr = full, &stderr
		cmd.Run()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%q: %v, printed %q", args, cmd.ProcessState, stderr.String())
		}
	}
}

// TestBrokenPipe closes the reading end of the pipe that gets the progress.
func TestBrokenPipe(t *testing.T) {
	in, parent := sparse(t, "in.gguf", 256), t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := process("export", "--progress", "json", in, filepath.Join(parent, "out"))
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := io.ReadFull(r, make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v, want exit code 1", cmd.ProcessState)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("leftover: %v %v", left, err)
	}
}

// TestKilledExport kills exports over an older one at any point while their files are renamed. Readers never see
// files of both; the next export completes the new ones.
func TestKilledExport(t *testing.T) {
	input := func(value float32) string {
		f := &writer.File{Path: filepath.Join(t.TempDir(), strconv.Itoa(int(value))+".gguf"),
			Metadata: gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}}}
		for i := range 40 {
			f.Tensors = append(f.Tensors, writer.Tensor{Name: "t" + strconv.Itoa(i), Type: gguf.TypeF32,
				Source: rows.Float32s([]float32{value})})
		}
		if _, err := writer.Write(context.Background(), f, writer.Options{}); err != nil {
			t.Fatal(err)
		}
		return f.Path
	}
	older, newer := input(1), input(2)
	args := []string{"export", "--progress", "none", "--force", "--max-shard-size", "4"}
	contents := func(dir string) map[string]string {
		all := map[string]string{}
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all[e.Name()] = string(b)
		}
		return all
	}
	fresh := filepath.Join(t.TempDir(), "fresh")
	if code, out, err := call(append(args[:len(args):len(args)], newer, fresh)...); code != 0 {
		t.Fatal(out, err)
	}
	killed := 0
	for tries := 0; killed < 6 && tries < 200; tries++ { // on a busy machine most exports end before they are killed
		dir := filepath.Join(t.TempDir(), "out")
		if code, out, err := call(append(args[:len(args):len(args)], older, dir)...); code != 0 {
			t.Fatal(out, err)
		}
		cmd := process(append(args[:len(args):len(args)], newer, dir)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() { cmd.Wait(); close(gone) }()
		for waiting := true; waiting; { // for the rename journal
			select {
			case <-gone:
				waiting = false
			default:
				if found, _ := filepath.Glob(filepath.Join(dir, "ggforge-*")); len(found) > 0 {
					cmd.Process.Kill()
					waiting = false
				}
			}
		}
		<-gone
		if cmd.ProcessState.ExitCode() != 0 {
			killed++
		}
		if c, err := safetensorstest.OpenDir(dir); err == nil {
			seen := map[string]bool{}
			for _, x := range c.Tensors() {
				seen[string(x.Data())] = true
			}
			c.Close()
			if len(seen) != 1 {
				t.Errorf("a reader takes a mixture for a model: %v", slices.Sorted(maps.Keys(contents(dir))))
			}
		}
		if code, out, err := call(append(args[:len(args):len(args)], newer, dir)...); code != 0 {
			t.Fatal(out, err)
		}
		if got := contents(dir); !maps.Equal(got, contents(fresh)) {
			t.Errorf("the next export leaves %v", slices.Sorted(maps.Keys(got)))
		}
	}
	if killed == 0 {
		t.Error("no export was killed")
	}
}

// TestTerminalEscapes prints names with terminal escape sequences.
func TestTerminalEscapes(t *testing.T) {
	const name = "evil\x1b]0;title\x07\u009b31m\u202ename"
	file := func(value string) string {
		tensors := []gguf.Tensor{{Name: name, NE: []int64{4}, Type: gguf.TypeF32}}
		m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
			{Key: "k" + name, Value: gguf.String(name + value)}}
		data := make([]byte, gguf.Layout(tensors, 32))
		path := filepath.Join(t.TempDir(), "x.gguf")
		if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, tensors, 32), data...), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := file("a"), file("b")
	for _, args := range [][]string{{"inspect", a}, {"inspect", "--full", a}, {"inspect", "--json", a}, {"diff", a, b},
		{"inspect", a + "\x1b[2J"}, {"export", a, t.TempDir() + name}} {
		out, _ := process(args...).CombinedOutput()
		if bytes.ContainsAny(out, "\x1b\x07\u009b\u202e") || !bytes.Contains(out, []byte(`\`)) {
			t.Errorf("%q prints %q", args, out)
		}
		if slices.Contains(args, "--json") {
			var d struct{ Tensors []struct{ Name string } }
			if err := json.Unmarshal(out, &d); err != nil || d.Tensors[0].Name != name {
				t.Errorf("%v: %q", err, out)
			}
		}
	}
}

// TestMetaInPlace changes metadata of a sparse file of 4 GiB: it stays sparse, because no byte of a tensor is
// written.
func TestMetaInPlace(t *testing.T) {
	path := sparse(t, "large.gguf", 4<<10)
	room := func() int64 {
		t.Helper()
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return int64(st.Sys().(*syscall.Stat_t).Blocks) * 512
	}
	if room() > 1<<20 {
		t.Skip("no holes in files here")
	}
	// the padding of the header takes up the differences of length
	for _, architecture := range []string{"mamba", "bert", "llama"} {
		code, out, err := call("meta", "--set", "general.architecture="+architecture, path)
		if code != 0 || !strings.Contains(out, "changed where it is") {
			t.Fatalf("exit code %d, %v: %s", code, err, out)
		}
		if n := room(); n > 1<<20 {
			t.Errorf("takes %d bytes", n)
		}
	}
}
