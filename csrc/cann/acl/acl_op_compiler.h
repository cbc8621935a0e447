// Programs include this name for compile options; everything is declared in one file here.

#ifndef ADASUM_CANN_ACL_ACL_OP_COMPILER_H
#define ADASUM_CANN_ACL_ACL_OP_COMPILER_H

#include "acl/acl.h"

#endif
