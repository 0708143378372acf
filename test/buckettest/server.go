// Package buckettest is a server of objects for tests: a small part of the protocol of S3, in
// memory, that checks what it is sent and can misbehave.
package buckettest

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running server. Its fields may be set before the first request.
type Server struct {
	URL string

	// NoSums makes a server that knows no checksums but MD5, and no conditions unless Conditions is set.
	NoSums, Conditions bool
	// Page is how many names, parts or uploads a page of a listing has; default 1000.
	Page int
	// Aged makes all objects and uploads an hour old at once.
	Aged bool
	// Anonymous permits reading to everybody; else requests without a signature are refused.
	Anonymous bool

	mu       sync.Mutex
	answer   Answer
	requests int
	open     int // requests that have no answer yet
	idle     *sync.Cond
	begun    int              // uploads
	parts    int              // stored ones, repeated ones included
	sent     map[string]int64 // bytes of each upload's object that came in parts, repeated ones included
	objects  map[string]*object
	uploads  map[string]*upload
}

// Answer sees a request first, with the number of requests so far; it answers and returns true, or leaves that to the
// server.
type Answer func(n int, w http.ResponseWriter, r *http.Request) bool

// SetAnswer sets the function that gets requests first, nil for none. It may be called at any time.
func (s *Server) SetAnswer(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = a
}

type object struct {
	data []byte
	etag string
	crc  string // of the whole, in base64
	at   time.Time
	meta http.Header // X-Amz-Meta-*
}

type upload struct {
	key   string
	parts map[int]*object
	meta  http.Header
	begun time.Time
}

// Serve starts a server with the files of a folder (unless it is "") as objects BUCKET/FOLDER/NAME, where prefix is
// BUCKET/FOLDER/, and points the variables of the environment at it. It ends with the test.
func Serve(t testing.TB, folder, prefix string) *Server {
	s := &Server{objects: map[string]*object{}, uploads: map[string]*upload{}, sent: map[string]int64{}}
	s.idle = sync.NewCond(&s.mu)
	if folder != "" {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			name, _ := filepath.Rel(folder, path)
			s.Put(prefix+filepath.ToSlash(name), data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": s.URL, "AWS_ENDPOINT_URL": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
		"AWS_PROFILE": "", "AWS_SESSION_TOKEN": "",
		"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "none"),
	} {
		if setter, ok := t.(interface{ Setenv(name, value string) }); ok {
			setter.Setenv(name, value)
		}
	}
	return s
}

// Put stores an object, BUCKET/KEY.
func (s *Server) Put(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = made(data)
}

// Get returns an object, BUCKET/KEY, nil if it is not there.
func (s *Server) Get(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[name]; o != nil {
		return o.data
	}
	return nil
}

// Names returns the names of all objects, BUCKET/KEY, sorted.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Parts returns how many parts have been stored.
func (s *Server) Parts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts
}

// Sent returns how many bytes of an object, BUCKET/KEY, have come in parts, those of repeated parts included.
func (s *Server) Sent(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[name]
}

// Uploads returns how many uploads are not complete.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

// Idle waits until all requests have their answers.
func (s *Server) Idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.open > 0 {
		s.idle.Wait()
	}
}

// Spoil changes the first byte of each part that is stored for uploads, and its checksum.
func (s *Server) Spoil() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.uploads {
		for n, p := range u.parts {
			data := bytes.Clone(p.data)
			data[0]++
			u.parts[n] = made(data)
		}
	}
}

// Forget drops all uploads that are not complete.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.uploads)
}

func made(data []byte) *object {
	sum := md5.Sum(data)
	return &object{data: data, etag: hex.EncodeToString(sum[:]), crc: crc(data), at: time.Now()}
}

func crc(data []byte) string {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// Fail answers with an error of S3.
func Fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as the test wants it</Message></Error>", code)
}

func reply(w http.ResponseWriter, root string, v any) {
	w.Header().Set("Content-Type", "application/xml")
	e := xml.NewEncoder(w)
	e.EncodeElement(v, xml.StartElement{Name: xml.Name{Local: root}})
	e.Close()
}

// Lose does what a request wants, and breaks the connection instead of answering. For use by an Answer.
func (s *Server) Lose(_ http.ResponseWriter, r *http.Request) {
	s.serve(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	s.open++
	n, answer := s.requests, s.answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open--; s.open == 0 {
			s.idle.Broadcast()
		}
	}()
	if answer != nil && answer(n, w, r) {
		return
	}
	s.serve(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") == "" && !(s.Anonymous && (r.Method == "GET" || r.Method == "HEAD")) {
		Fail(w, 403, "AccessDenied")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if code := s.check(r, body); code != "" {
		Fail(w, 400, code)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/")
	bucket, key, _ := strings.Cut(name, "/")
	q := r.URL.Query()
	switch u := s.uploads[q.Get("uploadId")]; {
	case q.Has("uploads") && r.Method == "GET":
		s.listUploads(w, bucket, q.Get("prefix"), q.Get("upload-id-marker"))
	case key == "" && r.Method == "GET":
		s.list(w, bucket, q.Get("prefix"), q.Get("continuation-token"))
	case q.Has("uploads") && r.Method == "POST":
		s.begun++
		id := fmt.Sprintf("upload%d", s.begun)
		s.uploads[id] = &upload{name, map[int]*object{}, metadata(r), time.Now()}
		reply(w, "InitiateMultipartUploadResult", struct{ Bucket, Key, UploadId string }{bucket, key, id})
	case q.Has("uploadId") && (u == nil || u.key != name):
		Fail(w, 404, "NoSuchUpload")
	case u != nil && r.Method == "PUT":
		number, _ := strconv.Atoi(q.Get("partNumber"))
		p := made(body)
		u.parts[number] = p
		s.parts++
		s.sent[name] += int64(len(body))
		w.Header().Set("ETag", strconv.Quote(p.etag))
		if !s.NoSums {
			w.Header().Set("X-Amz-Checksum-Crc32c", p.crc)
		}
	case u != nil && r.Method == "GET":
		s.listParts(w, u, q.Get("part-number-marker"), q.Get("max-parts"))
	case u != nil && r.Method == "DELETE":
		delete(s.uploads, q.Get("uploadId"))
		w.WriteHeader(204)
	case u != nil && r.Method == "POST":
		s.complete(w, r, q.Get("uploadId"), name, body)
	case r.Method == "PUT":
		if status, code := s.refused(r, s.objects[name]); status != 0 {
			Fail(w, status, code)
			return
		}
		o := made(body)
		o.meta = metadata(r)
		s.objects[name] = o
		w.Header().Set("ETag", strconv.Quote(o.etag))
		if !s.NoSums {
			w.Header().Set("X-Amz-Checksum-Crc32c", o.crc)
		}
	case r.Method == "DELETE":
		delete(s.objects, name)
		w.WriteHeader(204)
	case r.Method == "GET" || r.Method == "HEAD":
		o := s.objects[name]
		if o == nil {
			Fail(w, 404, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", strconv.Quote(o.etag))
		maps.Copy(w.Header(), o.meta)
		w.Header().Set("Last-Modified", s.past(o.at).Format(http.TimeFormat))
		if !s.NoSums && r.Header.Get("X-Amz-Checksum-Mode") != "" {
			w.Header().Set("X-Amz-Checksum-Crc32c", o.crc)
			w.Header().Set("X-Amz-Checksum-Type", "FULL_OBJECT")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.data))
	default:
		Fail(w, 405, "MethodNotAllowed")
	}
}

// check returns the code of the error if the body does not match the headers.
func (s *Server) check(r *http.Request, body []byte) string {
	sum := sha256.Sum256(body)
	if h := r.Header.Get("X-Amz-Content-Sha256"); h != "" && h != hex.EncodeToString(sum[:]) &&
		h != "UNSIGNED-PAYLOAD" {
		return "XAmzContentSHA256Mismatch"
	}
	m := md5.Sum(body)
	if h := r.Header.Get("Content-Md5"); h != "" && h != base64.StdEncoding.EncodeToString(m[:]) {
		return "BadDigest"
	}
	if h := r.Header.Get("X-Amz-Checksum-Crc32c"); !s.NoSums && r.Method == "PUT" && h != "" && h != crc(body) {
		return "BadDigest"
	}
	return ""
}

// past returns the time that the server reports for at: an hour earlier if the server is Aged.
func (s *Server) past(at time.Time) time.Time {
	if s.Aged {
		at = at.Add(-time.Hour)
	}
	return at.UTC()
}

// metadata returns the metadata that a request gives its object.
func metadata(r *http.Request) http.Header {
	h := http.Header{}
	for name, v := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			h[name] = v
		}
	}
	return h
}

func (s *Server) page() int { return cmp.Or(s.Page, 1000) }

func (s *Server) list(w http.ResponseWriter, bucket, prefix, after string) {
	type content struct {
		Key, ETag, LastModified string
		Size                    int
	}
	var answer struct {
		Name, Prefix          string
		IsTruncated           bool
		NextContinuationToken string
		KeyCount              int
		Contents              []content
	}
	answer.Name, answer.Prefix = bucket, prefix
	last := ""
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		key, ok := strings.CutPrefix(name, bucket+"/")
		if !ok || !strings.HasPrefix(key, prefix) || key <= after {
			continue
		}
		if len(answer.Contents) == s.page() {
			answer.IsTruncated, answer.NextContinuationToken = true, last
			break
		}
		last = key
		o := s.objects[name]
		answer.Contents = append(answer.Contents, content{key, o.etag, s.past(o.at).Format("2006-01-02T15:04:05.000Z"),
			len(o.data)})
	}
	answer.KeyCount = len(answer.Contents)
	reply(w, "ListBucketResult", answer)
}

func (s *Server) listParts(w http.ResponseWriter, u *upload, after, most string) {
	type part struct {
		PartNumber                         int
		ETag, LastModified, ChecksumCRC32C string
		Size                               int
	}
	var answer struct {
		IsTruncated          bool
		NextPartNumberMarker int
		Part                 []part
	}
	from, _ := strconv.Atoi(after)
	page := s.page()
	if n, err := strconv.Atoi(most); err == nil {
		page = min(page, n)
	}
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		if n <= from {
			continue
		}
		if len(answer.Part) == page {
			answer.IsTruncated = true
			break
		}
		p := part{n, strconv.Quote(u.parts[n].etag), "2006-01-02T15:04:05.000Z", u.parts[n].crc, len(u.parts[n].data)}
		if s.NoSums {
			p.ChecksumCRC32C = ""
		}
		answer.Part, answer.NextPartNumberMarker = append(answer.Part, p), n
	}
	reply(w, "ListPartsResult", answer)
}

func (s *Server) listUploads(w http.ResponseWriter, bucket, prefix, after string) {
	type one struct{ Key, UploadId, Initiated string }
	var answer struct {
		Bucket                            string
		IsTruncated                       bool
		NextKeyMarker, NextUploadIdMarker string
		Upload                            []one
	}
	answer.Bucket = bucket
	for _, id := range slices.Sorted(maps.Keys(s.uploads)) {
		key, ok := strings.CutPrefix(s.uploads[id].key, bucket+"/")
		if !ok || !strings.HasPrefix(key, prefix) || id <= after {
			continue
		}
		if len(answer.Upload) == s.page() {
			answer.IsTruncated = true
			break
		}
		answer.Upload = append(answer.Upload, one{key, id, s.past(s.uploads[id].begun).Format(time.RFC3339Nano)})
		answer.NextKeyMarker, answer.NextUploadIdMarker = key, id
	}
	reply(w, "ListMultipartUploadsResult", answer)
}

// refused returns S3's answer to a write whose conditions do not hold for the existing object (nil if there is none).
// The status is 0 if they hold.
func (s *Server) refused(r *http.Request, there *object) (status int, code string) {
	match := r.Header.Get("If-Match")
	switch {
	case s.NoSums && !s.Conditions:
	case match != "" && there == nil:
		return 404, "NoSuchKey"
	case match != "" && match != "*" && match != strconv.Quote(there.etag),
		there != nil && r.Header.Get("If-None-Match") == "*":
		return 412, "PreconditionFailed"
	}
	return 0, ""
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request, id, name string, body []byte) {
	if status, code := s.refused(r, s.objects[name]); status != 0 {
		Fail(w, status, code)
		return
	}
	var list struct {
		Part []struct {
			PartNumber           int
			ETag, ChecksumCRC32C string
		}
	}
	if xml.Unmarshal(body, &list) != nil || len(list.Part) == 0 {
		Fail(w, 400, "MalformedXML")
		return
	}
	var data, sums []byte
	for i, p := range list.Part {
		have := s.uploads[id].parts[p.PartNumber]
		if p.PartNumber != i+1 || have == nil || strings.Trim(p.ETag, `"`) != have.etag || p.ChecksumCRC32C != "" &&
			p.ChecksumCRC32C != have.crc {
			Fail(w, 400, "InvalidPart")
			return
		}
		if first := len(s.uploads[id].parts[1].data); i+1 < len(list.Part) && len(have.data) != first || len(have.data) > first {
			Fail(w, 400, "InvalidPart") // as Cloudflare R2: all but the last have one length, and the last has no more
			return
		}
		data = append(data, have.data...)
		sum, _ := hex.DecodeString(have.etag)
		sums = append(sums, sum...)
	}
	o := made(data)
	if want := r.Header.Get("X-Amz-Checksum-Crc32c"); !s.NoSums && want != "" && want != o.crc {
		Fail(w, 400, "BadDigest")
		return
	}
	sum := md5.Sum(sums)
	o.etag, o.meta = fmt.Sprintf("%x-%d", sum, len(list.Part)), s.uploads[id].meta
	s.objects[name] = o
	delete(s.uploads, id)
	bucket, key, _ := strings.Cut(name, "/")
	answer := struct{ Bucket, Key, ETag, ChecksumCRC32C, ChecksumType string }{bucket, key, strconv.Quote(o.etag),
		o.crc, "FULL_OBJECT"}
	if s.NoSums {
		answer.ChecksumCRC32C, answer.ChecksumType = "", ""
	}
	reply(w, "CompleteMultipartUploadResult", answer)
}
