package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/publish/push"
	"ggforge/test/buckettest"
	"ggforge/test/hubtest"
)

// pushHub starts a hub and points the environment at it.
func pushHub(t *testing.T) *hubtest.Uploads {
	t.Helper()
	hub := hubtest.ServeUploads(t)
	for name, value := range map[string]string{"HF_ENDPOINT": hub.URL, "HF_TOKEN": hub.Token, "HF_TOKEN_PATH": "",
		"HF_HOME": t.TempDir()} {
		t.Setenv(name, value)
	}
	return hub
}

// TestPushVerb pushes folders: what is printed, and exit codes.
func TestPushVerb(t *testing.T) {
	hub := pushHub(t)
	dir := t.TempDir()
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("README.md", "---\nlicense: mit\n---\n")
	put("a.bin", strings.Repeat("a", 5000))
	put(".env", "private")
	at := expect(t, "push")
	at(0, "2 to send, at most 5.02 kB; the repository would be created", "--dry-run", dir, "hf://org/name")
	if hub.Files("org/name", "main") != nil {
		t.Error("the dry run has created it")
	}
	out := at(0, "2 files, 0 unchanged, 2 sent (5.02 kB)", "--private", dir, "hf://org/name")
	for _, want := range []string{"sent              5000  a.bin", "left out: .env", hub.URL + "/org/name: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	at(0, "2 files, 2 unchanged: nothing to publish", dir, "hf://org/name")
	put("b.bin", "b")
	var r push.Result
	if err := json.Unmarshal([]byte(at(0, "", "--json", "--pull-request", "--message", "m", dir, "hf://org/name")),
		&r); err != nil || r.PullRequest != hub.URL+"/org/name/discussions/1" || len(r.Files) != 3 ||
		r.Files[2].State != push.Sent || !slices.Equal(r.LeftOut, []string{".env", ".ggtool-release/"}) {
		t.Errorf("%+v, %v", r, err)
	}
	at(2, "want hf://ORG/NAME", dir, "org/name")
	at(2, "want a folder", filepath.Join(dir, "a.bin"), "hf://org/name")
	at(2, "--uploads 0", "--uploads", "0", dir, "hf://org/name")
	at(2, "64", "--uploads", "65", dir, "hf://org/name")
	put("SHA256SUMS", strings.Repeat("0", 64)+"  a.bin\n")
	at(3, "a.bin: SHA-256 is ", dir, "hf://org/name")
	if err := os.Remove(filepath.Join(dir, "SHA256SUMS")); err != nil {
		t.Fatal(err)
	}

	t.Setenv("HF_TOKEN", "")
	at(5, "needs a token", dir, "hf://org/name")
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "token"), []byte(hub.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HF_HOME", home)
	at(0, "1 stored on the server already", dir, "hf://org/name")
	t.Setenv("HF_TOKEN", "hf_wrong_token")
	if out := at(5, "Invalid credentials", dir, "hf://org/name"); strings.Contains(out, "hf_wrong") {
		t.Errorf("the token is in %s", out)
	}

	s := buckettest.Serve(t, "", "")
	at(0, "3 sent", dir, "s3://bucket/x")
	put("a.bin", "other")
	at(2, "use --force", dir, "s3://bucket/x")
	at(0, "1 sent", "--force", dir, "s3://bucket/x")
	if got := string(s.Get("bucket/x/a.bin")); got != "other" {
		t.Errorf("%q", got)
	}
	at(2, "no pull requests", "--private", dir, "s3://bucket/x")
}

// TestReleasePush makes a release, which is pushed when it is whole: again only what has changed.
func TestReleasePush(t *testing.T) {
	hub := pushHub(t)
	hub.PartBytes = 100_000
	source, _ := checkpointAndText(t)
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"--source", source, "--output", out, "--type", "Q8_0", "--progress", "none", "--push",
		"hf://org/name", "--private"}
	at := expect(t, "release")
	text := at(0, "sent", args...)
	if strings.Contains(text, hub.Token) || !hub.Private("org/name") {
		t.Errorf("%s", text)
	}
	want := published(t, out)
	got := hub.Files("org/name", "main")
	delete(got, ".gitattributes")
	if !maps.Equal(got, want) || len(want) < 4 {
		t.Errorf("the hub has %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	at(0, "unchanged: nothing to publish", args...)
	args = append(args, "--type", "Q4_0", "--json", "--quiet")
	var r releaseResult
	text = at(0, "", args...) // after warnings
	if err := json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &r); err != nil || r.Pushed == nil ||
		!r.Pushed.Changed {
		t.Errorf("%+v, %v", r.Pushed, err)
	}
	if err := os.Remove(filepath.Join(out, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	expect(t, "push")(7, "there is no manifest.json", out, "hf://org/name")
	hub.SetFault(func(name string, n int, w http.ResponseWriter, r *http.Request) bool {
		t.Errorf("%s: the hub is asked", name)
		return false
	})
	at(2, "want hf://ORG/NAME", "--source", source, "--output", out, "--type", "Q8_0", "--push", "org/name")
	at(2, "--private goes with --push", "--source", source, "--output", out, "--type", "Q8_0", "--private")
	t.Setenv("HF_TOKEN", "")
	at(5, "needs a token", "--source", source, "--output", out, "--type", "Q8_0", "--push", "hf://org/name")
}
