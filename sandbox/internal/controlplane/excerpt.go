package controlplane

import (
	"io"
	"os"
	"strings"
)

const (
	excerptHead  = 3
	excerptTail  = 10
	excerptBytes = 1 << 20
	excerptWidth = 300
)

// excerpt returns the first and the last lines of a log from an offset on, indented. A failed start names a
// bad flag before its usage text, and a port conflict at the end.
func excerpt(path string, from int64) string {
	file, err := os.Open(path)
	if err != nil {
		return "  " + err.Error()
	}
	defer file.Close()
	if size, err := file.Seek(0, io.SeekEnd); err == nil {
		from = max(from, size-excerptBytes)
	}
	data, err := io.ReadAll(io.NewSectionReader(file, from, excerptBytes))
	if err != nil {
		return "  " + err.Error()
	}
	return shorten(string(data))
}

func shorten(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > excerptHead+excerptTail {
		short := append([]string{}, lines[:excerptHead]...)
		short = append(short, "…")
		lines = append(short, lines[len(lines)-excerptTail:]...)
	}
	for i, line := range lines {
		if len(line) > excerptWidth {
			line = line[:excerptWidth] + "…"
		}
		lines[i] = "  " + line
	}
	return strings.Join(lines, "\n")
}
