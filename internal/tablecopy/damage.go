package tablecopy

import (
	"errors"
	"os"

	lerrors "github.com/syndtr/goleveldb/leveldb/errors"
)

// damaged reports whether an error of LevelDB speaks of what the files hold: it says
// so, or a file that it needs is not there.
func damaged(err error) bool {
	var corrupted *lerrors.ErrCorrupted
	return errors.As(err, &corrupted) || lerrors.IsCorrupted(err) || errors.Is(err, os.ErrNotExist)
}
