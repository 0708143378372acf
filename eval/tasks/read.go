package tasks

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"ggforge/fault"
)

// maxAnswers is the largest number of answers to a question, as in llama-perplexity.
const maxAnswers = 100

// Read returns the tasks in the contents of a file. name is for messages; warn is called with what is left out.
// likeTool leaves out what llama-perplexity loses: the last task of a Winogrande file that ends in one newline.
func Read(kind Kind, name string, data []byte, likeTool bool, warn func(...string)) ([]Task, error) {
	var list []Task
	var err error
	switch kind {
	case HellaSwag:
		list, err = readHellaSwag(name, string(data), likeTool)
	case Winogrande:
		list = readWinogrande(name, string(data), likeTool, warn)
	case MultipleChoice:
		list, err = readMultipleChoice(name, data)
	}
	if err == nil && len(list) == 0 {
		err = fault.Errorf(fault.Refused, "%s: no task of kind %s", name, kind)
	}
	return list, err
}

// readHellaSwag reads six lines for each task: the context, the number of the right ending, 0 to 3, and four endings.
func readHellaSwag(name, text string, likeTool bool) ([]Task, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines)%6 != 0 {
		return nil, fault.Errorf(fault.Broken, "%s: %d lines, want six for each task", name, len(lines))
	}
	var list []Task
	for i := 0; i < len(lines); i += 6 {
		t := Task{Kind: HellaSwag, Place: fmt.Sprintf("%s: line %d", name, i+1), Before: lines[i], Answers: lines[i+2 : i+6],
			Right: make([]bool, 4)}
		right, ok := leadingInt(lines[i+1])
		if !ok || (right < 0 || right > 3) && !likeTool {
			return nil, fault.Errorf(fault.Broken, "%s: line %d is %q, want the number of the right ending, 0 to 3", name, i+2,
				lines[i+1])
		}
		if right >= 0 && right < 4 {
			t.Right[right] = true
		}
		list = append(list, t)
	}
	return list, nil
}

// leadingInt returns the decimal integer that a text begins with, after spaces.
func leadingInt(s string) (int, bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	n := 0
	if n < len(s) && (s[n] == '-' || s[n] == '+') {
		n++
	}
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(s[:n], 10, 32)
	return int(v), err == nil
}

// readWinogrande reads a line for each task: index, sentence with a gap "_", two choices and the number of the right
// one, 1 or 2, separated by commas. A sentence in double quotes may have commas. Other lines are left out.
func readWinogrande(name, text string, likeTool bool, warn func(...string)) []Task {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if likeTool || lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var list []Task
	for i, line := range lines {
		t, why := winogrande(line)
		if why != "" {
			warn(fmt.Sprintf("%s: line %d is left out: %s", name, i+1, why))
			continue
		}
		t.Place = fmt.Sprintf("%s: line %d", name, i+1)
		list = append(list, t)
	}
	return list
}

// winogrande returns the task of a line, or why it is none.
func winogrande(line string) (t Task, why string) {
	var commas []int
	quoted := false
	for i := 0; i < len(line) && len(commas) < 4; i++ {
		switch {
		case line[i] == '"':
			quoted = !quoted
		case line[i] == ',' && !quoted:
			commas = append(commas, i)
		}
	}
	if len(commas) < 4 {
		return t, "it has less than five fields"
	}
	sentence := line[commas[0]+1 : commas[1]]
	if strings.HasPrefix(sentence, `"`) {
		sentence = sentence[1:max(1, len(sentence)-1)]
	}
	right, ok := leadingInt(line[commas[3]+1:])
	if !ok || right != 1 && right != 2 {
		return t, fmt.Sprintf("the answer is %q, want 1 or 2", line[commas[3]+1:])
	}
	before, after, ok := strings.Cut(sentence, "_")
	if !ok {
		return t, "the sentence has no gap _"
	}
	return Task{Kind: Winogrande, Before: before, After: after,
		Answers: []string{line[commas[1]+1 : commas[2]], line[commas[2]+1 : commas[3]]},
		Right:   []bool{right == 1, right == 2}}, ""
}

// readMultipleChoice reads the binary files of I. Kawrakow's validation sets, little-endian: uint32 number of tasks; for
// each, uint32 offset from the beginning; the tasks: a string, the question, and two sets of answers, the first with one
// right answer, the second, which is not used, with several. A string is uint32 bytes and these; answers are
// uint32 number, as many strings, as many int32 labels, 1 if the answer is right.
func readMultipleChoice(name string, data []byte) ([]Task, error) {
	r := &binaryReader{name: name, data: data}
	n := r.uint32()
	if r.err == nil && int64(n) > int64(len(data)-r.at)/4 {
		r.fail("%d tasks in a file of %d bytes", n, len(data))
	}
	if r.err != nil {
		return nil, r.err
	}
	offsets := data[r.at:][:4*n]
	r.at += int(4 * n)
	var list []Task
	for i := range int(n) {
		if r.task = i + 1; int64(binary.LittleEndian.Uint32(offsets[4*i:])) != int64(r.at) {
			r.fail("its offset is %d, want %d", binary.LittleEndian.Uint32(offsets[4*i:]), r.at)
			return nil, r.err
		}
		t := Task{Kind: MultipleChoice, Place: fmt.Sprintf("%s: task %d", name, i+1), Before: r.text()}
		t.Answers, t.Right = r.answers()
		r.answers()
		if r.err == nil && (t.Before == "" || len(t.Answers) == 0) {
			r.fail("no question, or no answers")
		}
		for k, s := range t.Answers {
			if r.err == nil && s == "" {
				r.fail("answer %d is empty", k+1)
			}
		}
		if r.err != nil {
			return nil, r.err
		}
		list = append(list, t)
	}
	return list, nil
}

// binaryReader reads values one after the other, until the first error.
type binaryReader struct {
	name string
	data []byte
	at   int
	task int // that is read, from 1
	err  error
}

func (r *binaryReader) fail(format string, args ...any) {
	if r.err != nil {
		return
	}
	place := r.name
	if r.task > 0 {
		place = fmt.Sprintf("%s: task %d", r.name, r.task)
	}
	r.err = fault.Errorf(fault.Broken, "%s: %s", place, fmt.Sprintf(format, args...))
}

// bytes returns the next n bytes; nil if there are less.
func (r *binaryReader) bytes(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if int64(n) > int64(len(r.data)-r.at) {
		r.fail("%d bytes at offset %d, in a file of %d", n, r.at, len(r.data))
		return nil
	}
	r.at += int(n)
	return r.data[r.at-int(n) : r.at]
}

func (r *binaryReader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *binaryReader) text() string { return string(r.bytes(r.uint32())) }

func (r *binaryReader) answers() (texts []string, right []bool) {
	n := r.uint32()
	if n > maxAnswers {
		r.fail("%d answers, want at most %d", n, maxAnswers)
	}
	for i := uint32(0); i < n && r.err == nil; i++ {
		texts = append(texts, r.text())
	}
	for i := uint32(0); i < n && r.err == nil; i++ {
		right = append(right, r.uint32() == 1)
	}
	return texts, right
}
