package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/test/buckettest"
	"ggforge/test/clitest"
	"ggforge/test/hubtest"
)

// soon fails a test that has taken longer than limit.
func soon(t *testing.T, start time.Time, limit time.Duration) {
	t.Helper()
	if d := time.Since(start); d > limit {
		t.Errorf("takes %v, want at most %v", d, limit)
	}
}

// TestRemoteBreaksOffAtTheBeginning has a server whose connections break off in the first mebibyte: received bytes
// are not requested again.
func TestRemoteBreaksOffAtTheBeginning(t *testing.T) {
	t.Setenv("HF_TOKEN", "")
	hub := hubtest.Serve(t, "org/gollama", gollama)
	var begun atomic.Int64
	hub.Answer = func(n int64, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") {
			return false
		}
		begun.Add(1)
		w.Header().Set("Content-Range", "bytes 0-1048575/13251080")
		w.Header().Set("Content-Length", "1048576")
		w.WriteHeader(http.StatusPartialContent)
		f, err := os.Open(filepath.Join(gollama, "model.safetensors"))
		if err == nil {
			_, err = io.CopyN(w, f, 100<<10)
			f.Close()
		}
		if err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}
	start := time.Now()
	if _, err := remote(t, hub, "hf://org/gollama"); err != nil || begun.Load() != 1 {
		t.Errorf("%v after %d requests for the beginning", err, begun.Load())
	}
	soon(t, start, time.Minute)
}

// TestRemoteErrorsEnd has servers that answer with errors which have no end, or come slowly.
func TestRemoteErrorsEnd(t *testing.T) {
	t.Setenv("HF_TOKEN", "")
	for name, pause := range map[string]time.Duration{"fast": 0, "slow": 100 * time.Millisecond} {
		for _, status := range []int{http.StatusForbidden, http.StatusFound} {
			hub := hubtest.Serve(t, "org/gollama", gollama)
			hub.Answer = func(n int64, w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/config.json") {
					return false
				}
				if status == http.StatusFound {
					w.Header().Set("Location", hub.Host+"/nothing")
				}
				w.WriteHeader(status)
				for {
					if _, err := fmt.Fprintf(w, "%1000d", 0); err != nil {
						return true
					}
					w.(http.Flusher).Flush()
					time.Sleep(pause)
				}
			}
			start := time.Now()
			if _, err := remote(t, hub, "hf://org/gollama"); err == nil {
				t.Errorf("%s, %d: no error", name, status)
			}
			soon(t, start, time.Minute)
		}
	}
}

// TestRemoteLocationIsNotShown has a server that redirects to an address with a signature that cannot be read.
func TestRemoteLocationIsNotShown(t *testing.T) {
	t.Setenv("HF_TOKEN", "")
	for _, to := range []string{"http://host/a?signature=secret%zz\x7f", "http://[bad/?signature=secret", "://?secret",
		"http://a b/?secret", "ftp://host/?secret=1", "http://user:secret@%/"} {
		hub := hubtest.Serve(t, "org/gollama", gollama)
		hub.Answer = func(n int64, w http.ResponseWriter, r *http.Request) bool {
			w.Header()["Location"] = []string{to}
			w.WriteHeader(http.StatusFound)
			return true
		}
		if _, err := remote(t, hub, "hf://org/gollama"); err == nil || strings.Contains(err.Error(), "signature") {
			t.Errorf("%q: %v", to, err)
		}
	}
}

// TestRemoteHeadsAreReleased reads the headers of many shards, a mebibyte of each: memory is released after each
// shard.
func TestRemoteHeadsAreReleased(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector uses more memory")
	}
	t.Setenv("HF_TOKEN", "")
	const shards = 150
	dir := copyOf(t, "gollama")
	must(t, os.Remove(filepath.Join(dir, "model.safetensors")))
	index := map[string]string{}
	for i := range shards {
		name, tensor := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, shards), fmt.Sprintf("model.layers.%d.w", i)
		index[tensor] = name
		must(t, safetensorstest.Write(filepath.Join(dir, name),
			[]safetensorstest.Tensor{{Name: tensor, DType: safetensors.F32, Shape: []int64{288, 1024},
				Data: make([]byte, 288<<12)}}, nil))
	}
	text, err := json.Marshal(map[string]any{"weight_map": index})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), text, 0o666))
	hub := hubtest.Serve(t, "org/many", dir)
	t.Setenv("HF_ENDPOINT", hub.URL)
	got := clitest.Alone(t, "--dry-run", "--progress", "none", "hf://org/many")
	if !strings.Contains(got.Text, "model.layers.0.w") || hub.Requests() < shards {
		t.Errorf("exit code %d after %d requests: %.300s", got.Code, hub.Requests(), got.Text)
	}
	if t.Logf("%d MB", got.Peak>>20); got.Peak > 120<<20 {
		t.Errorf("%d MB resident, want at most 120", got.Peak>>20)
	}
}

// TestObjectListsEnd has S3 servers whose answers have no end.
func TestObjectListsEnd(t *testing.T) {
	const head = `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix>m/</Prefix>`
	object := func(w io.Writer, key string) error {
		_, err := fmt.Fprintf(w,
			"<Contents><Key>%s</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>x</ETag><Size>1</Size></Contents>", key)
		return err
	}
	endless := func(w http.ResponseWriter) bool {
		for {
			if _, err := fmt.Fprintf(w, "%4000s", ""); err != nil {
				return true
			}
		}
	}
	for name, c := range map[string]struct {
		answer func(n int, w http.ResponseWriter) bool
		text   string
		code   int
	}{
		"a page of spaces": {func(n int, w http.ResponseWriter) bool {
			io.WriteString(w, head)
			return endless(w)
		}, "more than 8388608 bytes", 3},
		"a page of names": {func(n int, w http.ResponseWriter) bool {
			io.WriteString(w, head)
			for i := 0; object(w, fmt.Sprint("m/", i)) == nil; i++ {
			}
			return true
		}, "more than 8388608 bytes", 3},
		"spaces after a page": {func(n int, w http.ResponseWriter) bool {
			io.WriteString(w, head+"<IsTruncated>false</IsTruncated></ListBucketResult>")
			return endless(w)
		}, "no objects there", 2},
		"empty pages": {func(n int, w http.ResponseWriter) bool {
			fmt.Fprintf(w, "%s<IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken></ListBucketResult>", head, n)
			return true
		}, "does not end after 2000 pages", 3},
		"the same empty page": {func(n int, w http.ResponseWriter) bool {
			io.WriteString(w,
				head+"<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>")
			return true
		}, "does not end after 2000 pages", 3},
		"pages of placeholders": {func(n int, w http.ResponseWriter) bool {
			io.WriteString(w, head)
			for i := range 1000 {
				object(w, fmt.Sprintf("m/%d-%d/", n, i))
			}
			fmt.Fprintf(w, "<IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken></ListBucketResult>", n)
			return true
		}, "more than 100000 objects", 4},
		"an endless error": {func(n int, w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>")
			return endless(w)
		}, "403 Forbidden", 1},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && c.code == 4 {
				t.Skip("takes long with the race detector")
			}
			s := buckettest.Serve(t, "", "")
			s.SetAnswer(func(n int, w http.ResponseWriter, r *http.Request) bool { return c.answer(n, w) })
			start := time.Now()
			got := clitest.Alone(t, "--dry-run", "--progress", "none", "s3://bucket/m")
			if got.Code != c.code || !strings.Contains(got.Text, c.text) {
				t.Errorf("exit code %d, want %d and %q: %.300s", got.Code, c.code, c.text, got.Text)
			}
			if t.Logf("%d MB", got.Peak>>20); got.Peak > 400<<20 {
				t.Errorf("%d MB resident", got.Peak>>20)
			}
			soon(t, start, time.Minute)
		})
	}
}
