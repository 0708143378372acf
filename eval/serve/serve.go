// Package serve answers requests of evaluation harnesses over HTTP: the probabilities of prompts by the completions of
// OpenAI's interface with echo and logprobs, and the tokenizer of the model. It generates no texts: at most one token.
//
//	POST /v1/completions   prompt (a text, ids, or a list of either), echo, logprobs, max_tokens 0 or 1
//	POST /tokenize         {"prompt", "add_special_tokens"} → {"tokens", "count", "max_model_len"}
//	POST /detokenize       {"tokens"} → {"prompt"}
//	GET  /tokenizer_info   {"bos_token", "eos_token", "chat_template"}
//	GET  /v1/models, GET /health
//
// Requests that come within a few milliseconds, and those that wait for the model, go through it together, so that its
// weights are read once for all of them. Errors have the form of OpenAI's.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/model"
	"ggforge/tokenizer/vocab"
)

// Limits of requests.
const (
	maxBody    = 16 << 20 // bytes of a request
	maxPrompts = 2048     // prompts of a request
	maxTokens  = 1 << 20  // tokens of a request
	maxTop     = 100      // the most probable tokens that are asked for
	maxListed  = 1 << 22  // tokens of a request times those that are asked for at each
	maxWaiting = 1024     // requests that wait for the model
)

// Options are the options of New.
type Options struct {
	Workers int
	// AnyHost permits requests to other names than those of this machine, for a server that is not local.
	AnyHost bool
	// Wait is how long the first of several requests waits for others; 0 for 5 ms.
	Wait time.Duration
}

// Server answers requests about a model.
type Server struct {
	m        *eval.Model
	v        *vocab.Vocab
	o        Options
	name     string
	template string // for chats, or ""
	context  int    // tokens that the model was trained with, or 0
	jobs     chan *job
	stopped  chan struct{} // closed when Run ends
}

// New returns a server for a model. It answers while Run runs.
func New(source *model.Model, m *eval.Model, v *vocab.Vocab, o Options) *Server {
	s := &Server{m: m, v: v, o: o, name: filepath.Base(source.Path), context: texts.Context(source),
		jobs: make(chan *job, maxWaiting), stopped: make(chan struct{})}
	if t, ok := source.Metadata.Get("tokenizer.chat_template"); ok {
		s.template, _ = t.Str()
	}
	if s.o.Wait == 0 {
		s.o.Wait = 5 * time.Millisecond
	}
	return s
}

// job is a request for the model.
type job struct {
	ctx       context.Context
	sequences []eval.Sequence
	top       int // how many of the most probable tokens are asked for

	answers [][]eval.Answer
	best    [][][]eval.Candidate
	err     error
	done    chan struct{}
}

// Run runs the model over requests until ctx ends.
func (s *Server) Run(ctx context.Context) {
	defer close(s.stopped)
	for {
		var first *job
		select {
		case first = <-s.jobs:
		case <-ctx.Done():
			return
		}
		jobs, tokens := []*job{first}, first.tokens()
		for late := time.After(s.o.Wait); late != nil && tokens < maxTokens; {
			select {
			case j := <-s.jobs:
				jobs, tokens = append(jobs, j), tokens+j.tokens()
			case <-late:
				late = nil
			case <-ctx.Done():
				return
			}
		}
		s.run(ctx, jobs)
	}
}

func (j *job) tokens() (n int) {
	for _, s := range j.sequences {
		n += len(s.Tokens)
	}
	return n
}

// run runs the model over the sequences of jobs, except those whose clients have gone.
func (s *Server) run(ctx context.Context, jobs []*job) {
	var groups [][]eval.Sequence
	var of []*job
	o := eval.ScoreOptions{Workers: s.o.Workers}
	for _, j := range jobs {
		if j.ctx.Err() != nil {
			close(j.done)
			continue
		}
		j.best = make([][][]eval.Candidate, len(j.sequences))
		for i := range j.sequences {
			j.best[i] = make([][]eval.Candidate, len(j.sequences[i].Queries))
		}
		groups, of, o.Best = append(groups, j.sequences), append(of, j), max(o.Best, j.top)
	}
	o.Found = func(group, sequence, query int, best []eval.Candidate) {
		j := of[group]
		j.best[sequence][query] = best[:min(j.top, len(best))]
	}
	answers, err := s.m.Score(ctx, groups, o)
	for i, j := range of {
		if j.err = err; err == nil {
			j.answers = answers[i]
		}
		close(j.done)
	}
}

// score has the model run over the sequences of a job.
func (s *Server) score(j *job) error {
	j.done = make(chan struct{})
	select {
	case <-s.stopped:
		return errStopping
	default:
	}
	select {
	case s.jobs <- j:
	default:
		return &apiError{http.StatusServiceUnavailable, fmt.Sprintf("%d requests wait for the model: try again later", maxWaiting)}
	}
	select {
	case <-j.done:
		if errors.Is(j.err, context.Canceled) {
			return errStopping
		}
		return j.err
	case <-j.ctx.Done():
		return j.ctx.Err()
	case <-s.stopped:
		return errStopping
	}
}

// apiError is an error with the status of its response.
type apiError struct {
	status  int
	message string
}

func (e *apiError) Error() string { return e.message }

var errStopping = &apiError{http.StatusServiceUnavailable, "the server is stopping"}

func invalid(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// Handler returns the handler of all requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, value func() any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, value()) })
	}
	post := func(path string, answer func(ctx context.Context, body []byte) (any, error)) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			body, err := read(w, r)
			var value any
			if err == nil {
				value, err = answer(r.Context(), body)
			}
			if err != nil {
				refuse(w, err)
				return
			}
			reply(w, http.StatusOK, value)
		})
	}
	get("/health", func() any { return map[string]string{"status": "ok"} })
	get("/v1/models", func() any {
		return map[string]any{"object": "list", "data": []any{map[string]any{"id": s.name, "object": "model", "created": 0,
			"owned_by": "ggeval", "max_model_len": s.context}}}
	})
	get("/tokenizer_info", s.info)
	post("/tokenize", s.tokenize)
	post("/detokenize", s.detokenize)
	post("/v1/completions", s.complete)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &apiError{http.StatusNotFound, fmt.Sprintf("%s %s: want POST /v1/completions, /tokenize, /detokenize, or GET "+
			"/tokenizer_info, /v1/models, /health", r.Method, r.URL.Path)})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.o.AnyHost && !Local(r.Host) { // a page in a browser that has made its name one of this machine
			refuse(w, &apiError{http.StatusForbidden, fmt.Sprintf("Host %q: want this machine's", r.Host)})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Local reports whether an address, with or without a port, is one of this machine alone: localhost or a loopback address.
func Local(address string) bool {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// read returns the body of a request.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &apiError{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type %q: want application/json",
			r.Header.Get("Content-Type"))}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if e := new(http.MaxBytesError); errors.As(err, &e) {
		return nil, &apiError{http.StatusRequestEntityTooLarge, fmt.Sprintf("more than %d bytes", maxBody)}
	}
	if err != nil {
		return nil, invalid("%v", err)
	}
	return body, nil
}

// reply writes a response.
func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(value) // an error means that the client has gone
}

// refuse writes an error in OpenAI's form.
func refuse(w http.ResponseWriter, err error) {
	status, kind := http.StatusInternalServerError, "server_error"
	switch e := new(apiError); {
	case errors.As(err, &e):
		status = e.status
	case fault.Has(err):
		status = http.StatusBadRequest
	}
	switch {
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case status < 500:
		kind = "invalid_request_error"
	}
	reply(w, status, map[string]any{"error": map[string]any{"message": err.Error(), "type": kind, "param": nil, "code": nil}})
}

// info returns the special tokens and the template of the tokenizer.
func (s *Server) info() any {
	info := map[string]any{}
	for name, of := range map[string]func() (int32, bool){"bos_token": s.v.Bos, "eos_token": s.v.Eos} {
		info[name] = nil
		if id, ok := of(); ok {
			info[name] = s.v.Token(id)
		}
	}
	if s.template != "" {
		info["chat_template"] = s.template
	}
	return info
}

func (s *Server) tokenize(_ context.Context, body []byte) (any, error) {
	text, special, err := parseTokenize(body)
	if err != nil {
		return nil, err
	}
	ids, err := s.encode(text, special)
	if err != nil {
		return nil, err
	}
	return map[string]any{"tokens": ids, "count": len(ids), "max_model_len": s.context}, nil
}

// encode returns the tokens of a text, in which names of special tokens are these tokens.
func (s *Server) encode(text string, special bool) ([]int32, error) {
	ids, err := s.v.Encode(text, vocab.Options{ParseSpecial: true})
	if bos, ok := s.v.Bos(); special && ok && s.v.AddBos() {
		ids = append([]int32{bos}, ids...)
	}
	if ids == nil {
		ids = []int32{}
	}
	return ids, err
}

func (s *Server) detokenize(_ context.Context, body []byte) (any, error) {
	ids, err := parseDetokenize(body)
	if err == nil {
		err = s.check(ids)
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"prompt": s.v.Decode(ids)}, nil
}

// check returns an error if ids are not those of tokens.
func (s *Server) check(ids []int32) error {
	for i, id := range ids {
		if int(id) >= s.v.Len() {
			return invalid("token %d is %d, want less than %d", i, id, s.v.Len())
		}
	}
	return nil
}

// Limits of connections. A response waits for the model, and has no limit.
const (
	headerTime  = 10 * time.Second
	requestTime = time.Minute
	idleTime    = 2 * time.Minute
	stopTime    = 500 * time.Millisecond
)

// Serve runs the model for the requests that come to a listener, until ctx ends. Then the run is cancelled, requests that
// wait get an error, and Serve returns nil. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, IdleTimeout: idleTime,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.Run(ctx)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	var err error
	select {
	case err = <-failed:
		cancel()
	case <-ctx.Done():
	}
	<-s.stopped
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer stop()
	if server.Shutdown(ending) != nil {
		server.Close()
	}
	return err
}
