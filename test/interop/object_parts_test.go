package interop

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ggforge/internal/io/bucket"
	"ggforge/test/hftest"
)

// TestObjectParts has three workers quantize a model from a real object store to it, each killed at random moments,
// ten times in all. The object has the bytes that one process writes, no part that the server has confirmed is sent
// again, and no file is made.
func TestObjectParts(t *testing.T) {
	s := startObjects(t, "models", "out")
	dir, temp := t.TempDir(), t.TempDir()
	spec := *hftest.Lookup("llama")
	spec.Name = "model"
	model, err := spec.Write(dir, hftest.Variant{Seed: 1, DType: "BF16", Ring: true, Shards: 2,
		Set: `{"torch_dtype": "bfloat16", "vocab_size": 32000, "hidden_size": 1024, "intermediate_size": 2816,
		"num_hidden_layers": 14, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64}`})
	must(t, err)
	list, err := os.ReadDir(model)
	must(t, err)
	var files []bucket.File
	for _, e := range list {
		files = append(files, bucket.File{Path: filepath.Join(model, e.Name()),
			To: bucket.Name{Bucket: "models", Key: "model/" + e.Name()}})
	}
	must(t, s.client.Upload(context.Background(), files, bucket.UploadOptions{}))
	proxy := startProxy(t, s)
	t.Setenv("AWS_ENDPOINT_URL_S3", proxy.url)
	t.Setenv("TMPDIR", temp)
	for _, c := range []struct {
		command string
		args    []string
		names   []string
	}{
		{"ggquant", []string{"s3://models/model", "s3://out/q/model-Q8_0.gguf", "Q8_0"}, []string{"q/model-Q8_0.gguf"}},
		{"ggconv", []string{"--outtype", "f16", "s3://models/model", "s3://out/c/model-F16.gguf"},
			[]string{"c/model-F16.gguf"}},
		{"ggquant", []string{"--name-template", "{ftype}.gguf", "--out-dir", "s3://out/several", "s3://models/model", "F16",
			"Q8_0", "Q4_K_M"}, []string{"several/f16.gguf", "several/q8_0.gguf", "several/q4_k_m.gguf"}},
	} {
		t.Run(filepath.Dir(c.names[0]), func(t *testing.T) {
			args := append([]string{"-t", "1", "--model-name", "x"}, c.args...)
			local := append([]string{}, args...)
			for i := range local {
				local[i] = strings.Replace(local[i], "s3://out/", dir+"/", 1)
				local[i] = strings.Replace(local[i], "s3://models/model", model, 1)
			}
			must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(c.names[0])), 0o777))
			one := time.Now()
			ours(t, c.command, local...)
			alone := time.Since(one)
			proxy.stored, proxy.again, proxy.cut, proxy.bytes = map[string]bool{}, nil, 0, 0
			begun := time.Now()
			killWorkers(t, nil, c.command, args...)
			took := time.Since(begun)
			if s.there("s3://out/" + c.names[0]) {
				t.Error("an object is there before the end")
			}
			begun = time.Now()
			ours(t, c.command, append([]string{"--finish"}, args...)...)
			finish := time.Since(begun)
			ours(t, c.command, append([]string{"--finish"}, args...)...)
			var size int64
			for _, name := range c.names {
				info, err := os.Stat(filepath.Join(dir, name))
				must(t, err)
				size += info.Size()
				if sum, _ := s.sum("s3://out/" + name); sum != fileSum(t, filepath.Join(dir, name)) {
					t.Errorf("%s is not the file of one process", name)
				}
			}
			if len(proxy.again) > 0 {
				t.Errorf("sent again although the server had confirmed them: %q", proxy.again)
			}
			left, err := s.client.Incomplete(context.Background(), bucket.Name{Bucket: "out"})
			if err != nil || len(left) > 0 {
				t.Errorf("uploads left: %v %v", left, err)
			}
			folder := bucket.Name{Bucket: "out", Key: filepath.Dir(c.names[0])}
			objects, err := s.client.List(context.Background(), folder, 100)
			if err != nil || len(objects) != len(c.names) {
				t.Errorf("objects: %v %v", objects, err)
			}
			if left := outputsIn(t, temp); len(left) > 0 {
				t.Errorf("left on the disk: %q", left)
			}
			t.Logf("%s: %d bytes, %d pieces confirmed, %d bytes sent, %d pieces cut; one process on a disk "+
				"%.1f s, three workers %.1f s, --finish %.2f s", c.command, size, len(proxy.stored), proxy.bytes, proxy.cut,
				alone.Seconds(), took.Seconds(), finish.Seconds())
		})
	}
}

// killWorkers has three workers make the parts of a command. They are killed at random moments of their work, ten
// times in all, and then left alone, with more in their environment.
func killWorkers(t *testing.T, more []string, command string, args ...string) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	var kills atomic.Int64
	var worker sync.WaitGroup
	for k := range 3 {
		shares := []float64{random.Float64(), random.Float64(), random.Float64(), random.Float64()}
		run := slices.Concat(args, []string{"--part", fmt.Sprintf("%d/3", k+1)})
		worker.Go(func() {
			for _, share := range shares[:3+(3-k)/3] { // four of the first worker
				kill := func(p *os.Process) {
					kills.Add(1)
					p.Kill()
				}
				if out, err := during(t, "", 0.7*share, kill, command, run...); err == nil {
					t.Errorf("part %d was not killed: %s", k+1, out)
				}
			}
			cmd := exec.Command(filepath.Join(bin, command), append(run, "--progress", "none")...)
			cmd.Env = append(os.Environ(), more...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("part %d: %v\n%s", k+1, err, out)
			}
		})
	}
	worker.Wait()
	if kills.Load() != 10 {
		t.Errorf("%d processes were killed, want 10", kills.Load())
	}
}

// outputsIn returns the files of outputs in a folder. Killed processes leave side files of checkpoints there.
func outputsIn(t *testing.T, dir string) (list []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && (strings.Contains(path, ".gguf") || strings.Contains(path, "-upload-")) {
			list = append(list, path)
		}
		return err
	}))
	return list
}
