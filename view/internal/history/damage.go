package history

import lerrors "github.com/syndtr/goleveldb/leveldb/errors"

func leveldbCorrupted(err error) bool {
	for err != nil {
		if lerrors.IsCorrupted(err) {
			return true
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		err = u.Unwrap()
	}
	return false
}
