// Package hubtest is a fake Hugging Face hub for tests: it lists models, redirects to a second server that has the
// files, and can misbehave.
package hubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Commit is the only commit of all models.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// Hub is a running server. Its fields may be set before the first request.
type Hub struct {
	URL  string // of the hub
	Host string // of the second server, which has the files

	Token string // if set, requests to the hub without it are refused
	// Answer, if set, is called for each request for a file with the number of requests so far. If it returns true, it
	// has answered; else the server does.
	Answer func(n int64, w http.ResponseWriter, r *http.Request) bool
	// Listed changes the names of the files that the hub lists.
	Listed func([]string) []string
	// Rate limits a file's connection, in bytes per second; 0 is no limit.
	Rate int

	signatures atomic.Int64 // each redirect has its own

	mu       sync.Mutex
	leaked   []string // paths of requests to the second server that had the token
	sent     atomic.Int64
	requests atomic.Int64
}

// Serve starts a hub with the model id (ORG/NAME), which has the files of a folder. It stops at the end of the test.
func Serve(t testing.TB, id, folder string) *Hub {
	h := &Hub{}
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			h.mu.Lock()
			h.leaked = append(h.leaked, r.URL.Path)
			h.mu.Unlock()
		}
		n := h.requests.Add(1)
		if h.Answer != nil && h.Answer(n, w, r) {
			return
		}
		h.file(w, r, filepath.Join(folder, filepath.FromSlash(r.URL.Path)))
	}))
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.Token != "" && r.Header.Get("Authorization") != "Bearer "+h.Token {
			http.Error(w, "log in first", http.StatusUnauthorized)
			return
		}
		path := r.URL.EscapedPath()
		switch {
		case path == "/api/models/"+id || path == "/api/models/"+id+"/revision/main" ||
			path == "/api/models/"+id+"/revision/"+Commit:
			h.list(t, w, id, folder)
			return
		case path == "/api/models/"+id+"/tree/"+Commit:
			h.tree(t, w, folder)
			return
		case strings.HasPrefix(path, "/"+id+"/resolve/"):
			rev, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"+id+"/resolve/"), "/")
			st, err := os.Stat(filepath.Join(folder, filepath.FromSlash(name)))
			if err != nil || rev != "main" && rev != Commit {
				break
			}
			w.Header().Set("X-Repo-Commit", Commit)
			w.Header().Set("X-Linked-Etag", fmt.Sprintf("%q", name))
			w.Header().Set("X-Linked-Size", fmt.Sprint(st.Size()))
			http.Redirect(w, r, fmt.Sprintf("%s/%s?signature=secret%d", files.URL, name, h.signatures.Add(1)),
				http.StatusFound)
			return
		}
		http.NotFound(w, r)
	}))
	h.URL, h.Host = hub.URL, files.URL
	t.Cleanup(hub.Close)
	t.Cleanup(files.Close)
	t.Cleanup(func() {
		if len(h.leaked) > 0 {
			t.Errorf("the token was sent to another server, for %q", h.leaked)
		}
	})
	return h
}

// Sent returns how many bytes of files have been sent.
func (h *Hub) Sent() int64 { return h.sent.Load() }

// Requests returns how many requests for files there were.
func (h *Hub) Requests() int64 { return h.requests.Load() }

// names returns the files of the model.
func (h *Hub) names(t testing.TB, folder string) (names []string) {
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, err := filepath.Rel(folder, path)
			names = append(names, filepath.ToSlash(name))
			return err
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return names
}

// tree answers with the files and their sizes, as huggingface_hub requests them.
func (h *Hub) tree(t testing.TB, w http.ResponseWriter, folder string) {
	type file struct {
		Type string `json:"type"`
		Path string `json:"path"`
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	}
	var files []file
	for _, name := range h.names(t, folder) {
		st, err := os.Stat(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
			continue
		}
		files = append(files, file{"file", name, Commit, st.Size()})
	}
	json.NewEncoder(w).Encode(files)
}

// list answers with the files of the model.
func (h *Hub) list(t testing.TB, w http.ResponseWriter, id, folder string) {
	names := h.names(t, folder)
	if h.Listed != nil {
		names = h.Listed(names)
	}
	type file struct {
		Name string `json:"rfilename"`
	}
	answer := struct {
		ID       string `json:"id"`
		SHA      string `json:"sha"`
		Siblings []file `json:"siblings"`
	}{ID: id, SHA: Commit}
	for _, name := range names {
		answer.Siblings = append(answer.Siblings, file{name})
	}
	json.NewEncoder(w).Encode(answer)
}

// file sends a file, whole or a range.
func (h *Hub) file(w http.ResponseWriter, r *http.Request, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprint(len(data))))
	http.ServeContent(&meter{w, h}, r, "", time.Time{}, bytes.NewReader(data))
}

// meter counts and throttles what is written.
type meter struct {
	http.ResponseWriter
	hub *Hub
}

func (m *meter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), 64<<10)]
		if m.hub.Rate > 0 {
			time.Sleep(time.Duration(len(part)) * time.Second / time.Duration(m.hub.Rate))
		}
		var k int
		k, err = m.ResponseWriter.Write(part)
		m.hub.sent.Add(int64(k))
		n += k
		p = p[k:]
	}
	return n, err
}
