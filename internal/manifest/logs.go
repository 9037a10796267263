package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// kubectl cluster-info dump puts the logs of containers between the objects when it writes to standard output.
const (
	logStart = "==== START logs for container "
	logEnd   = "==== END logs for container "
)

var errOpenLog = errors.New("the log that begins here has no end, so that what follows is lost")

// isLogStart reports whether a line begins a log.
func isLogStart(line []byte) bool { return bytes.HasPrefix(line, []byte(logStart)) }

// endOfLog is how the log ends that a line begins.
func endOfLog(line []byte) []byte {
	return bytes.Replace(bytes.TrimRight(line, "\r\n"), []byte(logStart), []byte(logEnd), 1)
}

// skipLog reads past the end of a log, and calls read with the length of each line, or part of a long one. When there
// is no end the error is io.EOF.
func skipLog(in *bufio.Reader, end []byte, read func(size int, line bool)) error {
	var tail []byte // of the line that is read: a log need not end its last line
	for {
		part, err := in.ReadSlice('\n')
		ended := bytes.HasSuffix(part, []byte("\n"))
		if len(part) > 0 {
			read(len(part), ended)
		}
		tail = append(tail, part...)
		whole := ended || errors.Is(err, io.EOF)
		if whole && bytes.HasSuffix(bytes.TrimRight(tail, "\r\n"), end) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if whole {
			tail = tail[:0]
		}
		if spare := len(tail) - len(end) - len("\r\n"); spare > 0 {
			tail = append(tail[:0], tail[spare:]...)
		}
	}
}
