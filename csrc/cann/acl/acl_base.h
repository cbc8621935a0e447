// Programs include this name for base types; everything is declared in one file here.

#ifndef ADASUM_CANN_ACL_ACL_BASE_H
#define ADASUM_CANN_ACL_ACL_BASE_H

#include "acl/acl.h"

#endif
