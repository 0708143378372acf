package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tool "ggforge/cmd/internal/cli"
	"ggforge/gguf"
	"ggforge/test/hubtest"
	"ggforge/writer"
)

// remote converts a model of a hub and returns the file.
func remote(t *testing.T, hub *hubtest.Hub, args ...string) ([]byte, error) {
	t.Helper()
	t.Setenv("HF_ENDPOINT", hub.URL)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	defer func() {
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left in the folder for temporary files: %v %v", left, err)
		}
	}()
	out := filepath.Join(t.TempDir(), "out.gguf")
	_, text, err := call(append([]string{"--progress", "none", "--outfile", out}, args...)...)
	if bad := "secret"; strings.Contains(text, bad) || err != nil && strings.Contains(err.Error(), bad) {
		t.Errorf("a signature or a token is shown: %s %v", text, err)
	}
	if err != nil {
		if _, e := os.Stat(out); e == nil {
			t.Errorf("there is an output after %v", err)
		}
		return nil, err
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data, nil
}

// local converts gollama from the disk.
func local(t *testing.T, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.gguf")
	if code, _, err := call(append([]string{"--progress", "none", "--outfile", out, gollama}, args...)...); code != 0 {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRemote converts a model of a hub, named in each supported way.
func TestRemote(t *testing.T) {
	t.Setenv("HF_TOKEN", "")
	names := filepath.Join(t.TempDir(), "names.json")
	if err := os.WriteFile(names, []byte(`{"general.name": "Gollama", "general.organization": "Org"}`),
		0o666); err != nil {
		t.Fatal(err)
	}
	want := local(t, "--metadata", names)
	hub := hubtest.Serve(t, "org/gollama", gollama)
	for name, args := range map[string][]string{
		"scheme":   {"hf://org/gollama"},
		"revision": {"hf://org/gollama@main"},
		"flag":     {"--remote", "org/gollama"},
		"page":     {hub.URL + "/org/gollama"},
		"tree":     {hub.URL + "/org/gollama/tree/main"},
		"folder":   {hubtest.Serve(t, "org/all", filepath.Dir(gollama)).Host + "/gollama/"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := remote(t, hub, append(args, "--metadata", names)...)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Error("not the file made from the local directory")
			}
		})
	}
}

// TestRemoteNames checks the default names of models of a hub.
func TestRemoteNames(t *testing.T) {
	folder, err := filepath.Abs(gollama)
	if err != nil {
		t.Fatal(err)
	}
	hub := hubtest.Serve(t, "org/gollama", folder)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "Gollama"}, {[]string{"--compat", "reference"}, "org/gollama"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("HF_ENDPOINT", hub.URL)
			if code, _, err := call(append([]string{"--progress", "none", "hf://org/gollama"},
				c.args...)...); code != 0 {
				t.Fatal(err)
			}
			f, err := gguf.Open("org-gollama-bf16.gguf")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if name, _ := f.Metadata.Get("general.name"); fmt.Sprint(name) != fmt.Sprint(gguf.String(c.want)) {
				t.Errorf("general.name is %v, want %s", name, c.want)
			}
		})
	}
}

// TestRemoteRoot checks that a model at the root of a server is written to the current directory.
func TestRemoteRoot(t *testing.T) {
	folder, err := filepath.Abs(gollama)
	if err != nil {
		t.Fatal(err)
	}
	hub := hubtest.Serve(t, "org/gollama", folder)
	t.Chdir(t.TempDir())
	if code, _, err := call("--progress", "none", hub.Host+"/"); code != 0 {
		t.Fatal(err)
	}
	if files, err := filepath.Glob("127.0.0.1-*.gguf"); err != nil || len(files) != 1 {
		t.Errorf("files %q (%v), want one named after the server", files, err)
	}
}

// TestRemoteToken checks that a token opens a model, and that hubtest's second server
// never sees it.
func TestRemoteToken(t *testing.T) {
	hub := hubtest.Serve(t, "org/gollama", gollama)
	hub.Token = "secret-token"
	t.Setenv("HF_TOKEN", "")
	t.Setenv("HF_TOKEN_PATH", filepath.Join(t.TempDir(), "none"))
	if _, err := remote(t, hub, "hf://org/gollama"); err == nil || !strings.Contains(err.Error(), "HF_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	t.Setenv("HF_TOKEN", "secret-other")
	if _, err := remote(t, hub, "hf://org/gollama"); err == nil ||
		!strings.Contains(err.Error(), "the account of the token") {
		t.Errorf("with another token: %v", err)
	}
	t.Setenv("HF_TOKEN", hub.Token)
	if _, err := remote(t, hub, "hf://org/gollama"); err != nil {
		t.Error(err)
	}
	t.Setenv("HF_TOKEN", "")
	home := t.TempDir()
	t.Setenv("HF_TOKEN_PATH", "")
	t.Setenv("HF_HOME", home)
	if _, err := remote(t, hub, "hf://org/gollama"); err == nil {
		t.Error("a folder without a token")
	}
	for name, path := range map[string]string{"HF_HOME": filepath.Join(home, "token"),
		"HF_TOKEN_PATH": filepath.Join(home, "other")} {
		if err := os.WriteFile(path, []byte(hub.Token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "HF_TOKEN_PATH" {
			t.Setenv(name, path)
		}
		if _, err := remote(t, hub, "hf://org/gollama"); err != nil {
			t.Errorf("the file of %s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HF_TOKEN_PATH", "")
	}
}

// TestRemoteNamesOfModels checks which names of models are refused.
func TestRemoteNamesOfModels(t *testing.T) {
	for _, name := range []string{
		"hf://gollama", "hf://", "hf://org/", "hf:///x", "hf://org/a/b", "hf://org/../x", "hf://org/x@../y",
		"hf://org/x?y", "hf://org/x y",
		"https://user:password@example.org/x", "https://example.org/x?token=y", "https://", "http://%zz/",
	} {
		t.Run(name, func(t *testing.T) {
			if code, _, err := call("--progress", "none", name, filepath.Join(t.TempDir(), "x.gguf")); code != 2 ||
				strings.Contains(fmt.Sprint(err), "password") {
				t.Errorf("exit code %d: %v", code, err)
			}
		})
	}
}

// TestRemoteParts converts a model of a hub in parts, and resumes after a signal: the small files are fetched again
// each time.
func TestRemoteParts(t *testing.T) {
	t.Setenv("HF_TOKEN", "")
	hub := hubtest.Serve(t, "org/gollama", gollama)
	t.Setenv("HF_ENDPOINT", hub.URL)
	dir := t.TempDir()
	run := func(out string, more ...string) int {
		code, text, err := call(append([]string{"--progress", "none", "--outfile", filepath.Join(dir, out),
			"hf://org/gollama"}, more...)...)
		if code != 0 && code != 130 {
			t.Fatal(more, text, err)
		}
		return code
	}
	run("want")
	for _, part := range []string{"2/2", "1/2"} {
		run("parts", "--part", part)
	}
	run("parts", "--finish")
	ctx, stop := context.WithCancelCause(t.Context())
	go func() { // as soon as something is written
		for ctx.Err() == nil {
			if st, err := os.Stat(filepath.Join(dir, "again.partial.rows")); err == nil && st.Size() > 3000 {
				stop(writer.ErrTerminated)
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	cmd := command()
	cmd.Writer, cmd.ErrWriter = io.Discard, io.Discard
	err := tool.Run(ctx, cmd, []string{"ggconv", "--progress", "none", "--threads", "1", "--outfile",
		filepath.Join(dir, "again"), "hf://org/gollama"})
	stop(nil)
	if tool.Code(err) == 130 && !writer.Resumable(err) {
		t.Error(err)
	}
	if tool.Code(err) == 130 { // the run may have ended before the signal
		run("again", "--resume")
	}
	want, err := os.ReadFile(filepath.Join(dir, "want"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"parts", "again"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: differs from the file of one run, %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("left %v, %v", left, err)
	}
}
