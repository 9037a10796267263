package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// socketSize is the approximate size of the kernel's structures for an idle TCP connection and its file.
const socketSize = 4 << 10

// socketMemory returns the approximate bytes in the kernel for this process's TCP connections: socketSize
// each, and the queued data.
func socketMemory() (int64, error) {
	ownInodes, err := ownSockets()
	if err != nil {
		return 0, err
	}
	var total int64
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil && !os.IsNotExist(err) {
			return 0, err
		}
		waiting, err := parseSockets(data, ownInodes)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", table, err)
		}
		total += waiting
	}
	return total, nil
}

// ownSockets returns the inodes of this process's sockets.
func ownSockets() (map[string]bool, error) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	inodes := map[string]bool{}
	for _, f := range files {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", f.Name()))
		if err != nil {
			continue // already closed
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes, nil
}

// parseSockets adds the queued bytes of some inodes' sockets. A line is "sl local remote st tx:rx tr:when
// retrnsmt uid timeout inode …".
func parseSockets(table []byte, inodes map[string]bool) (int64, error) {
	var total int64
	for line := range bytes.Lines(table) {
		fields := strings.Fields(string(line))
		if len(fields) < 10 || !inodes[fields[9]] {
			continue
		}
		total += socketSize
		for queue := range strings.SplitSeq(fields[4], ":") {
			n, err := strconv.ParseInt(queue, 16, 64)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}
