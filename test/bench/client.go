package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

//go:embed reference.py
var referencePy []byte

// client talks to a server.
type client struct {
	name   string
	in     io.WriteCloser
	out    *bufio.Reader
	cmd    *exec.Cmd
	errors bytes.Buffer // standard error
}

// startServer starts this program as a server whose vectors have that many bits, 0 for the scalar kernels. Asynchronous
// preemption is off: when Go's runtime resumes a preempted goroutine, vector registers stay in use, which makes scalar
// floating-point code many times slower on some processors, up to the next function that clears them.
func startServer(ctx context.Context, name string, bits int) (*client, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, serverArg)
	cmd.Env = append(os.Environ(), fmt.Sprintf("GODEBUG=simd=%d,asyncpreemptoff=1", bits))
	return start(name, cmd)
}

// startReference starts the reference's server.
func startReference(ctx context.Context, dir workDir) (*client, error) {
	if err := os.WriteFile(dir.path("reference.py"), referencePy, 0o666); err != nil {
		return nil, err
	}
	return start("reference", exec.CommandContext(ctx, "chroot", dir.root, "python3", dir.inside("reference.py")))
}

func start(name string, cmd *exec.Cmd) (*client, error) {
	c := &client{name: name, cmd: cmd}
	cmd.Stderr = &c.errors
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReader(out)
	return c, cmd.Start()
}

// ask sends a request and waits for the answer. The error is an io.EOF if the
// server has ended.
func (c *client) ask(r request) (a answer, err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	c.in.Write(append(line, '\n')) // to a server that has ended it fails, and then there is no answer
	if line, err = c.out.ReadBytes('\n'); err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		err = fmt.Errorf("server %q, %s of type %d: %w", c.name, r.Op, r.ID, err)
	}
	return a, err
}

// close ends the server.
func (c *client) close() {
	c.in.Close()
	c.cmd.Wait()
}

// calibrate returns how many rows take about the budget; 0 if the server has no
// such function.
func (c *client) calibrate(r request, budget time.Duration) (int, error) {
	for r.Rows = 1; ; {
		a, err := c.ask(r)
		if err != nil {
			return 0, err
		}
		if a.Seconds == 0 && r.Rows > 1<<20 {
			return 0, nil
		}
		want := budget.Seconds()
		if a.Seconds >= want/4 {
			return max(1, int(float64(r.Rows)*want/a.Seconds)), nil
		}
		r.Rows *= int(min(max(want/(2*max(a.Seconds, 1e-9)), 2), 64))
	}
}
