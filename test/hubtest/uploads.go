package hubtest

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Uploads is a hub to which models are uploaded, and the store of its large files on another address. What comes is
// checked: a request that the hub would not take is an error of the test. Its fields may be set before the first
// request.
type Uploads struct {
	URL   string // of the hub
	Store string // of the store
	Token string // that may write; default "hf_" and letters

	PartBytes int // of the parts of larger objects; default 1000
	PageFiles int // of a page of a tree; default 1000

	t      testing.TB
	mu     sync.Mutex
	faults Fault
	loses  func(name string, n int) bool
	repos  map[string]*repo
	// objects are those that are whole, by sum.
	objects map[string][]byte
	uploads map[string]*parts
	counts  map[string]int
	stored  map[string]int // parts and objects that came whole: "SUM/PART"
	sent    int64
	ids     int
}

// Fault is called for each request with its name (see Count) and the number of requests of that name so far. If it
// returns true it has answered.
type Fault func(name string, n int, w http.ResponseWriter, r *http.Request) bool

// SetFault sets the function that gets requests first, nil for none. It may be called at any time.
func (u *Uploads) SetFault(f Fault) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.faults = f
}

// SetLose sets a function that is called likewise, nil for none: if it returns true the request is done and the answer
// does not come.
func (u *Uploads) SetLose(f func(name string, n int) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.loses = f
}

// parts is an upload in parts.
type parts struct {
	sum  string
	size int
	by   map[int][]byte
}

// repo is a repository.
type repo struct {
	private bool
	heads   map[string]string // by branch
	commits map[string]map[string]blob
	pulls   int
}

// blob is a file of a commit: data, or an object.
type blob struct {
	data   []byte
	object string
	size   int
}

// ServeUploads starts a hub. It stops at the end of the test.
func ServeUploads(t testing.TB) *Uploads {
	u := &Uploads{Token: "hf_abcdefghijklmnopqrstuvwxyzabcdefgh", PartBytes: 1000, PageFiles: 1000, t: t,
		repos: map[string]*repo{}, objects: map[string][]byte{}, uploads: map[string]*parts{}, counts: map[string]int{},
		stored: map[string]int{}}
	hub := httptest.NewServer(http.HandlerFunc(u.hub))
	store := httptest.NewServer(http.HandlerFunc(u.store))
	u.URL, u.Store = hub.URL, store.URL
	t.Cleanup(hub.Close)
	t.Cleanup(store.Close)
	return u
}

// Files returns the files of a branch by their paths, nil if there is none.
func (u *Uploads) Files(id, branch string) map[string]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.repos[id]
	if r == nil || r.heads[branch] == "" {
		return nil
	}
	files := map[string]string{}
	for path, b := range r.commits[r.heads[branch]] {
		files[path] = string(b.data)
		if b.object != "" {
			files[path] = string(u.objects[b.object])
		}
	}
	return files
}

// Private reports whether a repository is private.
func (u *Uploads) Private(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.repos[id] != nil && u.repos[id].private
}

// Commits returns how many commits a repository has, with the one that it begins with.
func (u *Uploads) Commits(id string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.repos[id] == nil {
		return 0
	}
	return len(u.repos[id].commits)
}

// Add commits a file as somebody else does, in a repository that is created if it is not there.
func (u *Uploads) Add(id, path, content string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.repos[id]
	if r == nil {
		r = u.create(id, false)
	}
	files := maps.Clone(r.commits[r.heads["main"]])
	files[path] = blob{data: []byte(content), size: len(content)}
	u.commit(r, "main", files)
}

// Count returns how many requests of a name there were: info create validate tree preupload batch put part complete
// verify commit branch.
func (u *Uploads) Count(name string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts[name]
}

// Stored returns for each part and object how often it came whole, and the bytes of all requests to the store.
func (u *Uploads) Stored() (map[string]int, int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.stored), u.sent
}

// Forget forgets all uploads in parts that are not complete.
func (u *Uploads) Forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.uploads)
}

// create makes a repository, with u.mu held.
func (u *Uploads) create(id string, private bool) *repo {
	r := &repo{private: private, heads: map[string]string{}, commits: map[string]map[string]blob{}}
	u.repos[id] = r
	text := "*.bin filter=lfs\n"
	u.commit(r, "main", map[string]blob{".gitattributes": {data: []byte(text), size: len(text)}})
	return r
}

// commit makes a commit, with u.mu held.
func (u *Uploads) commit(r *repo, branch string, files map[string]blob) string {
	u.ids++
	id := fmt.Sprintf("%x", sha1.Sum([]byte(strconv.Itoa(u.ids))))
	r.heads[branch], r.commits[id] = id, files
	return id
}

// wrong reports a request that the hub would not take, and answers it.
func (u *Uploads) wrong(w http.ResponseWriter, r *http.Request, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	u.t.Errorf("%s %s: %s", r.Method, r.URL.Path, text)
	fail(w, http.StatusBadRequest, "", text)
}

// fail answers with an error.
func fail(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("X-Error-Message", text)
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.Header().Set("X-Request-Id", "Root=1-test")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": text})
}

// fault counts a request, and reports whether the fault has answered it, and whether the answer is to be lost.
func (u *Uploads) fault(name string, w http.ResponseWriter, r *http.Request) (answered, lost bool) {
	u.mu.Lock()
	u.counts[name]++
	n := u.counts[name]
	fault, lose := u.faults, u.loses
	u.mu.Unlock()
	return fault != nil && fault(name, n, w, r), lose != nil && lose(name, n)
}

func (u *Uploads) hub(w http.ResponseWriter, r *http.Request) {
	var p []string
	for part := range strings.SplitSeq(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/") {
		s, err := url.PathUnescape(part)
		if err != nil {
			u.wrong(w, r, "%v", err)
			return
		}
		p = append(p, s)
	}
	who := r.Header.Get("Authorization")
	signed := r.URL.Path == "/api/complete_multipart"
	if who != "" && (who != "Bearer "+u.Token || signed) {
		if signed {
			u.t.Errorf("%s: the token is sent to a signed address", r.URL.Path)
		}
		fail(w, http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
		return
	}
	name := ""
	switch {
	case r.URL.Path == "/api/validate-yaml":
		name = "validate"
	case r.URL.Path == "/api/repos/create":
		name = "create"
	case signed:
		name = "complete"
	case len(p) == 6 && p[0] == "api" && p[1] == "models":
		name = map[string]string{"revision": "info", "tree": "tree", "preupload": "preupload", "commit": "commit",
			"branch": "branch"}[p[4]]
	case len(p) == 6 && strings.HasSuffix(r.URL.Path, ".git/info/lfs/objects/batch"):
		name = "batch"
	case len(p) == 6 && strings.HasSuffix(r.URL.Path, ".git/info/lfs/objects/verify"):
		name = "verify"
	}
	if name == "" {
		u.wrong(w, r, "no such address")
		return
	}
	answered, lost := u.fault(name, w, r)
	if answered {
		return
	}
	if lost {
		w = httptest.NewRecorder()
		defer panic(http.ErrAbortHandler)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	writes := !slices.Contains([]string{"info", "tree", "validate", "complete"}, name)
	if writes && who == "" {
		fail(w, http.StatusUnauthorized, "", "Invalid username or password.")
		return
	}
	switch name {
	case "validate":
		u.validate(w, r, body)
		return
	case "create":
		u.created(w, r, body)
		return
	case "complete":
		u.complete(w, r, body)
		return
	}
	id := strings.Join(p[2:min(4, len(p))], "/")
	if name == "batch" || name == "verify" {
		id = p[0] + "/" + strings.TrimSuffix(p[1], ".git")
	}
	repo := u.repos[id]
	if repo == nil || repo.private && who == "" {
		fail(w, map[bool]int{true: 401, false: 404}[who == ""], "RepoNotFound", "Repository not found")
		return
	}
	switch name {
	case "batch":
		u.batch(w, r, repo, body)
		return
	case "verify":
		return
	case "branch":
		if repo.heads[p[5]] != "" {
			fail(w, http.StatusConflict, "", "Reference already exists")
			return
		}
		repo.heads[p[5]] = repo.heads["main"]
		return
	}
	head := repo.heads[p[5]]
	if repo.commits[p[5]] != nil {
		head = p[5]
	}
	if head == "" {
		fail(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id")
		return
	}
	switch name {
	case "info":
		json.NewEncoder(w).Encode(map[string]any{"id": id, "sha": head, "private": repo.private})
	case "tree":
		u.tree(w, r, repo.commits[head])
	case "preupload":
		u.preupload(w, r, body)
	case "commit":
		u.committed(w, r, repo, id, p[5], body)
	}
}

func (u *Uploads) validate(w http.ResponseWriter, r *http.Request, body []byte) {
	var v struct{ Content, RepoType string }
	if json.Unmarshal(body, &v) != nil || v.RepoType != "model" {
		u.wrong(w, r, "%s", body)
		return
	}
	list := func(text string) []map[string]string { return []map[string]string{{"message": text}} }
	switch {
	case strings.Contains(v.Content, "license: nonsense"):
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]any{"errors": list(`"license" must be one of [mit, ...]`)})
	case !strings.HasPrefix(v.Content, "---\n"):
		json.NewEncoder(w).Encode(map[string]any{"warnings": list("empty or missing yaml metadata in repo card")})
	default:
		io.WriteString(w, "{}")
	}
}

func (u *Uploads) created(w http.ResponseWriter, r *http.Request, body []byte) {
	var v struct{ Name, Organization, Type, Visibility string }
	if json.Unmarshal(body, &v) != nil || v.Type != "model" || v.Name == "" {
		u.wrong(w, r, "%s", body)
		return
	}
	id := v.Organization + "/" + v.Name
	if v.Organization == "closed" {
		fail(w, http.StatusForbidden, "", "You don't have the rights to create a model under this namespace")
		return
	}
	if u.repos[id] != nil {
		w.WriteHeader(http.StatusConflict)
	} else {
		u.create(id, v.Visibility == "private")
	}
	json.NewEncoder(w).Encode(map[string]string{"url": u.URL + "/" + id})
}

func (u *Uploads) tree(w http.ResponseWriter, r *http.Request, files map[string]blob) {
	type lfs struct {
		OID  string `json:"oid"`
		Size int    `json:"size"`
	}
	type entry struct {
		Type string `json:"type"`
		OID  string `json:"oid"`
		Size int    `json:"size"`
		Path string `json:"path"`
		LFS  *lfs   `json:"lfs,omitempty"`
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	var list []entry
	names := slices.Sorted(maps.Keys(files))
	for _, path := range names[min(from, len(names)):min(from+u.PageFiles, len(names))] {
		b := files[path]
		e := entry{Type: "file", Path: path, Size: b.size}
		if b.object != "" {
			e.LFS = &lfs{b.object, b.size}
			e.OID = fmt.Sprintf("%x", sha1.Sum([]byte(b.object)))
		} else {
			e.OID = fmt.Sprintf("%x", sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", b.size), b.data...)))
		}
		list = append(list, e)
	}
	if from+u.PageFiles < len(names) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=%d>; rel="next"`, u.URL, r.URL.EscapedPath(),
			from+u.PageFiles))
	}
	json.NewEncoder(w).Encode(list)
}

func (u *Uploads) preupload(w http.ResponseWriter, r *http.Request, body []byte) {
	var v struct {
		Files []struct {
			Path   string
			Size   int
			Sample string
		}
	}
	if json.Unmarshal(body, &v) != nil || len(v.Files) == 0 || len(v.Files) > 256 {
		u.wrong(w, r, "%d files", len(v.Files))
		return
	}
	var list []map[string]any
	for _, f := range v.Files {
		sample, err := base64.StdEncoding.DecodeString(f.Sample)
		if err != nil || len(sample) != min(f.Size, 512) {
			u.wrong(w, r, "%s: sample of %d bytes", f.Path, len(sample))
			return
		}
		mode := "regular"
		if f.Size > 0 && (bytes.IndexByte(sample, 0) >= 0 || strings.HasSuffix(f.Path, ".bin")) {
			mode = "lfs"
		}
		list = append(list, map[string]any{"path": f.Path, "uploadMode": mode,
			"shouldIgnore": strings.HasSuffix(f.Path, ".ignored")})
	}
	json.NewEncoder(w).Encode(map[string]any{"files": list})
}

func (u *Uploads) signed(path string, query ...string) string {
	u.ids++
	q := url.Values{"X-Amz-Signature": {fmt.Sprintf("secret%d", u.ids)}}
	for i := 0; i < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	return path + "?" + q.Encode()
}

func (u *Uploads) batch(w http.ResponseWriter, r *http.Request, repo *repo, body []byte) {
	const kind = "application/vnd.git-lfs+json"
	var v struct {
		Operation string
		Transfers []string
		Objects   []struct {
			OID  string
			Size int
		}
	}
	if json.Unmarshal(body, &v) != nil || v.Operation != "upload" || len(v.Objects) == 0 || len(v.Objects) > 256 ||
		r.Header.Get("Content-Type") != kind || r.Header.Get("Accept") != kind ||
		!slices.Contains(v.Transfers, "multipart") {
		u.wrong(w, r, "%s", body)
		return
	}
	var list []map[string]any
	for _, o := range v.Objects {
		one := map[string]any{"oid": o.OID, "size": o.Size}
		switch {
		case u.objects[o.OID] != nil:
		case o.Size <= u.PartBytes:
			one["actions"] = map[string]any{"upload": map[string]any{"href": u.signed(u.Store+"/"+o.OID, "size",
				strconv.Itoa(o.Size))}, "verify": map[string]any{"href": strings.TrimSuffix(u.URL+r.URL.Path, "batch") +
				"verify"}}
		default:
			u.ids++
			id := "upload" + strconv.Itoa(u.ids)
			u.uploads[id] = &parts{o.OID, o.Size, map[int][]byte{}}
			header := map[string]string{"chunk_size": strconv.Itoa(u.PartBytes)}
			for n := 1; n <= (o.Size+u.PartBytes-1)/u.PartBytes; n++ {
				header[fmt.Sprintf("%05d", n)] = u.signed(u.Store+"/"+o.OID, "uploadId", id, "partNumber",
					strconv.Itoa(n))
			}
			one["actions"] = map[string]any{"upload": map[string]any{"header": header,
				"href": u.signed(u.URL+"/api/complete_multipart", "uploadId", id)}}
		}
		list = append(list, one)
	}
	json.NewEncoder(w).Encode(map[string]any{"transfer": "multipart", "objects": list})
}

// Expired answers that an address has expired.
func Expired(w http.ResponseWriter) {
	w.WriteHeader(http.StatusForbidden)
	io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
}

func (u *Uploads) store(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name, id := "put", q.Get("uploadId")
	if id != "" {
		name = "part"
	}
	answered, lost := u.fault(name, w, r)
	if answered {
		return
	}
	if lost {
		w = httptest.NewRecorder()
		defer panic(http.ErrAbortHandler)
	}
	if r.Method != http.MethodPut || r.Header.Get("Authorization") != "" || r.ContentLength < 0 ||
		!strings.HasPrefix(q.Get("X-Amz-Signature"), "secret") {
		u.wrong(w, r, "headers %v", r.Header)
		return
	}
	data, err := io.ReadAll(r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sent += int64(len(data))
	if err != nil {
		return
	}
	sum := strings.TrimPrefix(r.URL.Path, "/")
	if id == "" {
		if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum || q.Get("size") != strconv.Itoa(len(data)) {
			fail(w, http.StatusBadRequest, "", "the sum is wrong")
			return
		}
		u.objects[sum] = data
		u.stored[sum]++
		return
	}
	n, _ := strconv.Atoi(q.Get("partNumber"))
	p := u.uploads[id]
	if p == nil {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "<Error><Code>NoSuchUpload</Code></Error>")
		return
	}
	if want := min(u.PartBytes, p.size-(n-1)*u.PartBytes); len(data) != want {
		u.wrong(w, r, "part %d of %d bytes, want %d", n, len(data), want)
		return
	}
	p.by[n] = data
	u.stored[fmt.Sprintf("%s/%d", sum, n)]++
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, md5.Sum(data)))
}

func (u *Uploads) complete(w http.ResponseWriter, r *http.Request, body []byte) {
	var v struct {
		OID   string
		Parts []struct {
			PartNumber int
			Etag       string
		}
	}
	id := r.URL.Query().Get("uploadId")
	p := u.uploads[id]
	if json.Unmarshal(body, &v) != nil || p != nil && (v.OID != p.sum || len(v.Parts) == 0) {
		u.wrong(w, r, "%s", body)
		return
	}
	if p == nil {
		fail(w, http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist.")
		return
	}
	var all []byte
	for i, x := range v.Parts {
		if x.PartNumber != i+1 || x.Etag != fmt.Sprintf(`"%x"`, md5.Sum(p.by[i+1])) {
			fail(w, http.StatusBadRequest, "", "InvalidPart")
			return
		}
		all = append(all, p.by[i+1]...)
	}
	delete(u.uploads, id)
	if got := sha256.Sum256(all); hex.EncodeToString(got[:]) != p.sum {
		fail(w, http.StatusBadRequest, "", "the sum is wrong")
		return
	}
	u.objects[p.sum] = all
	io.WriteString(w, `{"success":true}`)
}

func (u *Uploads) committed(w http.ResponseWriter, r *http.Request, repo *repo, id, branch string, body []byte) {
	files, head, change, changed := map[string]blob(nil), repo.heads[branch], map[string]blob{}, false
	for i, line := range bytes.Split(bytes.TrimSpace(body), []byte("\n")) {
		var v struct {
			Key   string
			Value struct {
				Summary, ParentCommit, Path, Content, Encoding, Algo, OID string
				Size                                                      int
			}
		}
		if err := json.Unmarshal(line, &v); err != nil || (i == 0) != (v.Key == "header") {
			u.wrong(w, r, "line %d: %v", i+1, err)
			return
		}
		switch v.Key {
		case "header":
			if v.Value.Summary == "" || v.Value.ParentCommit == "" {
				u.wrong(w, r, "the header is %s", line)
				return
			}
			if v.Value.ParentCommit != head && r.URL.Query().Get("create_pr") == "" {
				fail(w, http.StatusPreconditionFailed, "", "A commit has happened since. Please refresh and try again.")
				return
			}
			files = maps.Clone(repo.commits[head])
		case "file":
			data, err := base64.StdEncoding.DecodeString(v.Value.Content)
			if err != nil || v.Value.Encoding != "base64" {
				u.wrong(w, r, "line %d: %v", i+1, err)
				return
			}
			change[v.Value.Path] = blob{data: data, size: len(data)}
		case "lfsFile":
			if data := u.objects[v.Value.OID]; data == nil || len(data) != v.Value.Size || v.Value.Algo != "sha256" {
				u.wrong(w, r, "line %d: no object %s of %d bytes", i+1, v.Value.OID, v.Value.Size)
				return
			}
			change[v.Value.Path] = blob{object: v.Value.OID, size: v.Value.Size}
		default:
			u.wrong(w, r, "line %d: %s", i+1, v.Key)
			return
		}
	}
	for path, b := range change {
		was, there := files[path]
		changed = changed || !there || was.object != b.object || !bytes.Equal(was.data, b.data)
		files[path] = b
	}
	if !changed {
		u.wrong(w, r, "the commit changes nothing")
		return
	}
	answer := map[string]any{}
	if r.URL.Query().Get("create_pr") != "" {
		repo.pulls++
		branch = fmt.Sprintf("refs/pr/%d", repo.pulls)
		answer["pullRequestUrl"] = fmt.Sprintf("%s/%s/discussions/%d", u.URL, id, repo.pulls)
	}
	made := u.commit(repo, branch, files)
	answer["commitOid"], answer["commitUrl"] = made, u.URL+"/"+id+"/commit/"+made
	json.NewEncoder(w).Encode(answer)
}

// Slow reads the body of a request for about that time, and lets the server go on with it.
func Slow(r *http.Request, d time.Duration) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	time.Sleep(d)
	r.Body = io.NopCloser(bytes.NewReader(data))
}
