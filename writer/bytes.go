package writer

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// WriteBytes writes data to a file, as Write does tensors: under a temporary name first, and nothing is left after an
// error.
func WriteBytes(ctx context.Context, path string, data []byte, opt Options) error {
	l := layout{path: path, size: int64(len(data)), header: func() []byte { return data }}
	_, err := write(ctx, []set{{files: []layout{l}}}, opt)
	return err
}

// WriteFrom is WriteBytes for a file of that size with the bytes that from writes, in order. check, unless it is nil,
// reads the finished file back before it gets its name.
func WriteFrom(ctx context.Context, path string, size int64, from io.WriterTo, check func(path string) error,
	opt Options) error {
	l := layout{path: path, size: size, header: func() []byte { return nil }, body: from, check: check}
	_, err := write(ctx, []set{{files: []layout{l}}}, opt)
	return err
}

// fill writes the body of a file.
func (l *layout) fill(ctx context.Context, p *partial) error {
	if l.body == nil {
		return nil
	}
	w := bufio.NewWriterSize(&upTo{ctx: ctx, w: p, left: l.size}, 1<<18)
	n, err := l.body.WriteTo(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil && n != l.size {
		err = fmt.Errorf("%s: has %d bytes, want %d", l.path, n, l.size)
	}
	return err
}

// upTo writes one piece after the other to w, until the context is cancelled, and at most left bytes.
type upTo struct {
	ctx      context.Context
	w        io.WriterAt
	at, left int64
}

func (u *upTo) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(len(b)) > u.left {
		return 0, fmt.Errorf("more bytes than the %d that were announced", u.at+u.left)
	}
	n, err := u.w.WriteAt(b, u.at)
	u.at, u.left = u.at+int64(n), u.left-int64(n)
	return n, err
}
